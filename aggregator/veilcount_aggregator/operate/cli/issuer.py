"""`veilcount issuer`: keys, accounts and the server of an issuer of slot tokens."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import click

from veilcount_analysis.series.series import utc_day
from veilcount_issuer.accounts import create_account_key, read_account_key, sign_account
from veilcount_issuer.key_backup import export_keys, import_keys, is_encrypted
from veilcount_issuer.key_setup import KeySet, begin_ledger, set_up_keys
from veilcount_issuer.key_vault import FolderVault, KeyVault, StoreVault
from veilcount_issuer.own_store import require_own_store
from veilcount_issuer.worker import IssuerSettings, IssuerWorker, opened_issuer
from veilcount_serving.errors import SettingsError
from veilcount_serving.listen_address import ListenAddress
from veilcount_serving.malloc import limit_malloc_arenas
from veilcount_serving.structured_logging import configure_logging
from veilcount_serving.worker_processes import (
    Announce,
    StartupSummary,
    enter_worker,
    raise_file_limit,
    run_workers,
)
from veilcount_serving.wsgi_threads import WsgiThreads
from veilcount_shared import Collection

from ...settings import PREFIX, parse_labels
from ...store.store_url import redact_url
from . import options
from .issuer_ledger import FILE, accept, collections, erase_account, issued, keys_folder, verify
from .output import print_lines, print_result, print_startup

ADDRESS = "127.0.0.1:8430"


passphrase_file = click.option(
    "--passphrase-file", type=FILE, metavar="FILE", help="Its first line encrypts the backup."
)


@click.group("issuer")
def command() -> None:
    """Issue tokens, so that each account holds to its caps and no report shows whose it is."""


@command.group("keys", invoke_without_command=True)
@collections(required=False)
@options.store
@keys_folder
@options.as_json
@click.pass_context
def keys(
    context: click.Context,
    /,
    *,
    files: tuple[Path, ...],
    url: str | None,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Make the keys of each collection with linkage = "token"; export, import.

    Private keys go into the store or the folder, public ones beside the definitions (token_keys/),
    and their digest into the file. One more key signs the published numbers of accounts. What is
    there already stays as it is.
    """
    if context.invoked_subcommand is not None:
        return
    if not files:
        raise SettingsError("--collections", "", "give the definitions file")
    with _vault(url, folder, make=True) as vault:
        if url is not None:
            with options.opened(url, make=True) as store:
                begin_ledger(store, vault)
        today = utc_day(options.now())
        key_sets = [
            keys for file in files for keys in set_up_keys(file, vault, today, _announce_keys)
        ]
    signers = sorted({f"published numbers are signed by {keys.numbers_key}" for keys in key_sets})
    lines = [*map(_describe, key_sets), *signers]
    print_result([keys._asdict() for keys in key_sets], lines, as_json=as_json)


@keys.command("export")
@click.argument("file", type=FILE)
@options.store
@keys_folder
@passphrase_file
@options.as_json
def export(
    file: Path, url: str | None, folder: Path | None, passphrase_file: Path | None, *, as_json: bool
) -> None:
    """Write all secrets to a new file, as a backup: only its owner may read it."""
    with _vault(url, folder) as vault:
        entries = export_keys(vault, file, _passphrase(passphrase_file))
    how = "encrypted" if passphrase_file else "NOT encrypted: keep it offline"
    print_result({"entries": entries}, [f"{entries} secrets in {file}, {how}"], as_json=as_json)


@keys.command("import")
@click.argument("file", type=FILE)
@options.store
@keys_folder
@passphrase_file
@options.as_json
def import_(
    file: Path, url: str | None, folder: Path | None, passphrase_file: Path | None, *, as_json: bool
) -> None:
    """Add the secrets of a backup; what is there already stays as it is."""
    if is_encrypted(file) and passphrase_file is None:
        raise SettingsError("--passphrase-file", "", "the backup is encrypted: give its passphrase")
    with _vault(url, folder, make=True) as vault:
        entries = import_keys(vault, file, _passphrase(passphrase_file))
    print_result({"entries": entries}, [f"{entries} secrets added"], as_json=as_json)


@command.command("account-key")
@click.argument("file", type=FILE)
@click.option("--ed25519", is_flag=True, help="A key pair, of which the issuer gets FILE.pub.")
@options.as_json
def account_key(file: Path, *, ed25519: bool, as_json: bool) -> None:
    """Make the key with which your backend vouches for its accounts."""
    try:
        needed = create_account_key(file, ed25519=ed25519)
    except FileExistsError as error:
        raise SettingsError("file", str(file), "it exists: give a new name") from error
    line = f"your backend signs with {file}; the issuer verifies with {needed}"
    print_result({"key": str(file), "verifier": str(needed)}, [line], as_json=as_json)


@command.command("account-token")
@click.argument("account")
@click.option("--key", type=FILE, required=True, metavar="FILE", help="Key that signs.")
@click.option("--days", type=click.IntRange(1, 3650), default=1, show_default=True, help="Expiry.")
@options.as_json
def account_token(account: str, key: Path, days: int, *, as_json: bool) -> None:
    """Print a token that vouches for ACCOUNT, an opaque id of your app."""
    expires = options.now() + timedelta(days=days)
    token = sign_account(read_account_key(key), account, expires)
    print_result({"token": token}, [token], as_json=as_json)


@command.command("serve")
@collections(required=True)
@options.store
@keys_folder
@click.option(
    "--account-key",
    "account_keys",
    type=FILE,
    multiple=True,
    metavar="FILE",
    envvar=f"{PREFIX}ACCOUNT_KEY",
    help="Key that account tokens are verified with; repeatable, to replace one.",
)
@click.option(
    "--account-verifier", metavar="NAME", help="Installed verifier of your app's own sessions."
)
@options.bind(ADDRESS)
@click.option("--workers", type=click.IntRange(1, 1024), default=1, show_default=True)
@click.option(
    "--rate-limit",
    type=click.IntRange(0),
    default=8,
    show_default=True,
    help="Signatures per second for one account, in the long run; 0: no limit.",
)
@click.option(
    "--origins",
    default="",
    metavar="ORIGINS",
    callback=lambda _, __, text: parse_labels(text),
    help="Origins of web pages that may fetch tokens, separated by commas; no other page may.",
)
@options.startup_json
@click.pass_context
def serve(
    context: click.Context,
    /,
    *,
    files: tuple[Path, ...],
    url: str | None,
    folder: Path | None,
    bind: str,
    workers: int,
    as_json: bool,
    **accounts: Any,
) -> None:
    """Sign tokens for accounts, until SIGTERM."""
    settings = IssuerSettings(options.required_url(url), files, folder, **accounts)
    announce = partial(print_startup, as_json=as_json)
    context.exit(serve_issuer(settings, ListenAddress.parse(bind), workers, announce))


command.add_command(accept)
command.add_command(erase_account)
command.add_command(issued)
command.add_command(verify)


@contextmanager
def _vault(url: str | None, folder: Path | None, *, make: bool = False) -> Iterator[KeyVault]:
    """Open where the secrets are: a folder if one is given, else the store."""
    if folder is not None:
        yield FolderVault(folder, make=make)
        return
    with options.opened(url, make=make) as store:
        yield StoreVault(require_own_store(store))


def _passphrase(file: Path | None) -> bytes | None:
    if file is None:
        return None
    lines = file.read_bytes().splitlines()
    if not lines or not lines[0]:
        raise SettingsError("--passphrase-file", str(file), "its first line is empty")
    return lines[0]


def _announce_keys(collection: Collection) -> None:
    seconds = -(-collection.periods // 10)
    print_lines([f"{collection.name}: making {collection.periods} keys, {seconds} s"], err=True)


def _describe(keys: KeySet) -> str:
    did = "made" if keys.made else "complete"
    return f"{keys.collection}: {keys.periods} keys {did}, tokens = {keys.digest}"


# -- its processes: workers as the aggregator's, another application -------------------------------


class IssuerSummary(StartupSummary):
    """The line that is printed once the issuer accepts connections."""

    def __str__(self) -> str:
        return f"veilcount: issuing at {self.bind} from {self.store} ({self.durable})"


class IssuerRsgi:
    """One worker's application, which Granian calls: every request takes a thread."""

    def __init__(self, worker: IssuerWorker) -> None:
        self._threads = WsgiThreads(worker, worker.faults)

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        await self._threads.respond(scope, protocol)


def serve_issuer(
    settings: IssuerSettings, bind: ListenAddress, workers: int, announce: Announce
) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    bind.check()
    with opened_issuer(settings) as issuer:
        health = issuer.store.health()
    ready = IssuerSummary(bind, redact_url(settings.store), health.durable.value, workers, "issuer")
    configure_logging(sys.stderr)
    limit_malloc_arenas()
    raise_file_limit()
    return run_workers(ready, partial(_load, settings), announce)


def _load(settings: IssuerSettings) -> IssuerRsgi:
    enter_worker()
    worker = IssuerWorker(settings)
    worker.start()
    return IssuerRsgi(worker)
