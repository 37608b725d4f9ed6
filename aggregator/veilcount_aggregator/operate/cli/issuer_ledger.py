"""`veilcount issuer accept`, `erase-account`, `issued`, `verify`: ledger and published numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from pathlib import Path

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from veilcount_issuer.definition_file import DefinitionFile
from veilcount_issuer.issued_numbers import (
    IssuedNumber,
    encode_numbers,
    first_difference,
    verify_numbers,
)
from veilcount_issuer.issuer import open_publication
from veilcount_issuer.key_setup import no_tokens
from veilcount_issuer.numbers_key import read_public_key
from veilcount_issuer.own_store import require_own_store
from veilcount_issuer.publication import read_lines
from veilcount_issuer.worker import IssuerSettings
from veilcount_serving.errors import SettingsError
from veilcount_shared import Collection

from ...errors import NumbersInvalid
from ...records.audit_log import record_act
from ...settings import PREFIX
from ...store.restore_lock import WHOLE_LEDGER
from . import options
from .main import NegativeResult
from .output import confirm_by_typing, print_result, yes_option

ACCEPTED = "accept"
FILE = click.Path(path_type=Path)


collections = partial(options.collections_files, envvar=f"{PREFIX}COLLECTIONS")
keys_folder = click.option(
    "--keys",
    "folder",
    type=FILE,
    metavar="FOLDER",
    envvar=f"{PREFIX}ISSUER_KEYS",
    help="Folder of the private keys (default: in the store).",
)


@click.command("accept")
@options.store
@keys_folder
@yes_option
@options.as_json
def accept(url: str | None, folder: Path | None, *, yes: bool, as_json: bool) -> None:
    """Accept a ledger that may lack tokens that were issued, and issue from it.

    Nothing is issued from a store that was restored or went back, or that is newer than the keys.
    Accounts whose tokens it lacks have their caps once more, for each period that has not begun.
    """
    settings = IssuerSettings(options.required_url(url), (), folder)
    with closing(settings.open_store()) as store:
        require_own_store(store)
        store.durability()  # compares
        losses = list(store.losses())
        if not yes:
            lacks = "; ".join(losses) or "it may lack tokens that were issued"
            confirm_by_typing(
                f"WARNING: {lacks}. Once it is accepted, accounts that are missing from it can be"
                " issued tokens a second time, of each period that has not begun. If the newest"
                " ledger can still be put back, do that instead. The audit log records this.",
                ACCEPTED,
                "no token was issued under these keys, or accounts may have their caps once more",
                flags="give --yes",
                unchanged="nothing is issued",
            )
        store.accept_losses(options.now())
        entry = "; ".join(losses) or "may lack tokens"
        record_act(store, options.now(), "cli", "issuer accept", entry, WHOLE_LEDGER)
    line = "the ledger is accepted as it is: tokens are issued again"
    print_result({"accepted": losses}, [line], as_json=as_json)


@click.command("erase-account")
@click.argument("account")
@collections(required=True)
@options.store
@keys_folder
@options.as_json
def erase_account(
    account: str, files: tuple[Path, ...], url: str | None, folder: Path | None, *, as_json: bool
) -> None:
    """Erase the records of ACCOUNT (with -, the first line of the input), which is closed.

    Close the account in your backend first: one that asks again has its caps once more. The numbers
    of accounts stay as they are. The account is neither printed nor logged.
    """
    name = sys.stdin.readline().rstrip("\n") if account == "-" else account
    with options.opened(url) as store:
        vault = IssuerSettings("", files, folder).vault(require_own_store(store))
        ledger = open_publication(store, vault).ledger
        erased = [
            collection.name
            for collection in _collections_of(files)
            if ledger.erase(name, collection.fingerprint)
        ]
    lines = [f"erased: {', '.join(erased) or 'nothing: the store has no record of this account'}"]
    print_result({"erased": erased}, lines, as_json=as_json)


@click.group("issued")
def issued() -> None:
    """Export the published numbers: accounts per period; import them into a restored store."""


@issued.command("export")
@click.argument("name")
@click.argument("file", type=FILE)
@collections(required=True)
@options.store
@options.as_json
def export(
    name: str, file: Path, files: tuple[Path, ...], url: str | None, *, as_json: bool
) -> None:
    """Write the published numbers of the collection NAME to FILE."""
    by_name = {collection.name: collection for collection in _collections_of(files)}
    if name not in by_name:
        raise SettingsError("NAME", name, f"give one of {', '.join(by_name)}")
    with options.opened(url) as store:
        lines = read_lines(store, by_name[name].fingerprint)
    file.write_bytes(encode_numbers(lines))
    print_result({"periods": len(lines)}, [f"{len(lines)} periods in {file}"], as_json=as_json)


@issued.command("import")
@click.argument("published", metavar="FILE...", type=FILE, nargs=-1)
@collections(required=True)
@options.store
@keys_folder
@options.as_json
def import_(
    published: tuple[Path, ...],
    files: tuple[Path, ...],
    url: str | None,
    folder: Path | None,
    *,
    as_json: bool,
) -> None:
    """Add published numbers to a store that was restored, or is new; it then publishes again.

    Give the newest file of each collection. One whose file is not given had published nothing.
    """
    declared = list(_collections_of(files))
    names = {collection.fingerprint: collection.name for collection in declared}
    with options.opened(url) as store:
        vault = IssuerSettings("", files, folder).vault(require_own_store(store))
        publication = open_publication(store, vault)
        for file in published:
            try:
                publication.import_lines(file, names)
            except NumbersInvalid as error:
                raise NegativeResult(f"{file}: {error}") from error
        publication.resume(declared)
        periods = {
            collection.name: len(read_lines(store, collection.fingerprint))
            for collection in declared
        }
    lines = [f"{name}: {number} periods are published" for name, number in periods.items()]
    print_result({"periods": periods}, lines, as_json=as_json)


@click.command("verify")
@click.argument("file", type=FILE)
@click.argument("other", type=FILE, required=False)
@click.option(
    "--key", type=FILE, required=True, metavar="FILE", help="The issuer's token_keys/issuer.pem."
)
@options.as_json
def verify(file: Path, other: Path | None, key: Path, *, as_json: bool) -> None:
    """Verify the published numbers in FILE; with OTHER, compare two copies.

    Exit code 1: a file is not right, or the two prove that the issuer tells different numbers.
    """
    public = read_public_key(key)
    numbers = _verified(file, public)
    lines = [f"{file}: {len(numbers)} periods, each signed and in its place"]
    if other is not None:
        others = _verified(other, public)
        _compare(file, numbers, other, others)
        common = min(len(numbers), len(others))
        lines.append(f"{other}: {len(others)} periods; the same numbers in all {common} of both")
    facts = {"periods": [_facts(number) for number in numbers]}
    print_result(facts, [*lines, *map(_describe, numbers)], as_json=as_json)


def _verified(file: Path, key: Ed25519PublicKey) -> list[IssuedNumber]:
    try:
        return verify_numbers(file.read_bytes(), key)
    except NumbersInvalid as error:
        raise NegativeResult(f"{file}: {error}") from error


def _compare(
    file: Path, numbers: list[IssuedNumber], other: Path, others: list[IssuedNumber]
) -> None:
    difference = first_difference(numbers, others)
    if difference is None:
        return
    first, second = difference
    if first.collection != second.collection:
        raise SettingsError(
            "OTHER", str(other), f"give a copy of {file}: it is of another question"
        )
    raise NegativeResult(
        f"fraud: for period {first.period} the issuer signed {_signed(first)} in {file} and"
        f" {_signed(second)} in {other}. Keep both files: together they prove it to everybody"
    )


def _accounts(number: IssuedNumber) -> str:
    return "1 account" if number.accounts == 1 else f"{number.accounts} accounts"


def _signed(number: IssuedNumber) -> str:
    return f"{_accounts(number)} from {number.begins}"


def _describe(number: IssuedNumber) -> str:
    return f"period {number.period}, from {number.begins}: {_accounts(number)}"


def _facts(number: IssuedNumber) -> dict[str, object]:
    begins = number.begins.isoformat()
    return {"period": number.period, "begins": begins, "accounts": number.accounts}


def _collections_of(files: Iterable[Path]) -> Iterable[Collection]:
    """Yield the collections of definitions files that are reported with tokens."""
    for file in files:
        if not (pinned := DefinitionFile(file).pinned):
            raise no_tokens(file)
        yield from pinned
