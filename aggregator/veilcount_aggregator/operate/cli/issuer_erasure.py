"""`veilcount issuer erase-account`: what an operator does when a person asks for it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from veilcount_issuer.issuer import open_publication
from veilcount_issuer.own_store import require_own_store
from veilcount_issuer.worker import IssuerSettings

from . import options
from .issuer_numbers import collections_of
from .issuer_options import collections, keys_folder
from .output import print_result


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
            for collection in collections_of(files)
            if ledger.erase(name, collection.fingerprint)
        ]
    lines = [f"erased: {', '.join(erased) or 'nothing: the store has no record of this account'}"]
    print_result({"erased": erased}, lines, as_json=as_json)
