"""`veilcount issuer keys`: the keys of each collection that is reported with tokens.

In this order, each step durable before the next: private keys into the vault, public keys beside
the definitions, their digest into the definitions. The public key of the published numbers, one for
the whole issuer, is written beside the key lists. So what a definition pins is always there; an
interruption leaves keys that no definition names, and running it again makes others.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

from veilcount_aggregator.store import RecordStore
from veilcount_aggregator.store.records import update_records
from veilcount_aggregator.store.restore_lock import WHOLE_LEDGER
from veilcount_aggregator.store.target_lock import exclusive_file
from veilcount_shared import Collection
from veilcount_shared.errors import DefinitionError

from .definition_file import DefinitionFile
from .key_list_file import read_key_list, write_key_list
from .key_vault import LEDGER, NUMBERS, KeyVault
from .numbers_key import public_text, write_public_key
from .period_keys import PeriodKeys, make_keys

SECRET_BYTES = 32


class KeySet(NamedTuple):
    """The keys of one collection, and whether they were made just now."""

    collection: str
    periods: int
    digest: str
    made: bool
    numbers_key: str  # of the published numbers


def begin_ledger(store: RecordStore, vault: KeyVault) -> None:
    """Declare the ledger of a new issuer whole: no token was issued before its secret is made."""
    if vault.read(LEDGER) is None:
        update_records(store, lambda: ([WHOLE_LEDGER], None))


def set_up_keys(
    definitions: Path, vault: KeyVault, today: date, begin: Callable[[Collection], None]
) -> Iterator[KeySet]:
    """Make what is missing, and yield each key set; what is there is checked and stays.

    `begin` is called before keys are made, which takes a tenth of a second each.
    """
    with exclusive_file(definitions.resolve(), "--collections"):
        yield from _set_up(definitions, vault, today, begin)


def _set_up(
    definitions: Path, vault: KeyVault, today: date, begin: Callable[[Collection], None]
) -> Iterator[KeySet]:
    file = DefinitionFile(definitions)
    if not (file.pinned or file.unpinned):
        raise no_tokens(definitions)
    for collection in file.pinned:
        open_keys(definitions, collection, vault, today)
    secret, seed = secrets.token_bytes(SECRET_BYTES), secrets.token_bytes(SECRET_BYTES)
    vault.add({LEDGER: secret, NUMBERS: seed})
    numbers_key = public_text(write_public_key(definitions, vault))
    for collection in file.pinned:
        pinned = collection.tokens or ""
        yield KeySet(collection.name, collection.periods, pinned, False, numbers_key)
    for collection in file.unpinned:
        begin(collection)
        public, private = make_keys(collection.periods)
        vault.add(private)
        pinned = write_key_list(definitions, public)
        file.pin(collection.name, pinned)
        yield KeySet(collection.name, collection.periods, pinned, True, numbers_key)


def open_keys(
    definitions: Path, collection: Collection, vault: KeyVault, today: date
) -> PeriodKeys:
    """Return the keys of a collection, or refuse those that are not complete."""
    keys = PeriodKeys(collection, *read_key_list(definitions, collection), vault)
    if missing := keys.missing(today):
        fix = (
            f"the private keys of {len(missing)} periods, from {missing[0]} on, are not in the"
            " vault: give the --store or --keys where they are, or restore them with `veilcount"
            " issuer keys import`"
        )
        place = {"collection": collection.name, "file": definitions.name}
        raise DefinitionError("tokens", collection.tokens, fix, **place)
    return keys


def no_tokens(definitions: Path) -> DefinitionError:
    """Return the error of a file without a collection that is reported with tokens."""
    fix = 'no collection has linkage = "token": only these need an issuer'
    return DefinitionError("linkage", None, fix, file=definitions.name)
