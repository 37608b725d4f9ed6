"""What waits in a store that was restored from a backup: central releases, and an issuer's tokens.

Releases made after the backup are not in its books: a budget would be spent twice. So a restored
store carries a lock, until that spend is entered again from the release journal.

Tokens issued after the backup are not in its ledger: accounts would be issued them twice. One
record states that a store has every token that was issued; a restore takes it away, and without it
an issuer issues nothing until an operator accepts the ledger.
"""

from __future__ import annotations

from .interface import Record, RecordStore
from .records import update_records

KIND = "lock"
RELEASES = "releases"

_LEDGER, _WHOLE = "issuance-ledger", "whole"
WHOLE_LEDGER = Record(_LEDGER, _WHOLE, b"")
UNCERTAIN_LEDGER = Record(_LEDGER, _WHOLE, None)  # it may lack tokens that were issued


def release_lock_reason(store: RecordStore) -> str | None:
    """Return why releases wait, or None: they do not."""
    why = store.records(KIND).get(RELEASES)
    return None if why is None else why.decode()


def lock_releases(store: RecordStore, why: str) -> None:
    """Have releases wait."""
    update_records(store, lambda: ([Record(KIND, RELEASES, why.encode())], None))


def ledger_is_whole(store: RecordStore) -> bool:
    """Whether the store has every token that was issued under its issuer's keys."""
    return bool(store.records_at(_LEDGER, [_WHOLE]))
