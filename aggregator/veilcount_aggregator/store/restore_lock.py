"""The lock on central releases of a store that was restored from a backup.

Releases made after the backup are not in its books: a budget would be spent twice. So
a restored store carries a lock, until that spend is entered again from the release journal.
"""

from __future__ import annotations

from .interface import Record, Store
from .records import update_records

KIND = "lock"
RELEASES = "releases"


def release_lock_reason(store: Store) -> str | None:
    """Return why releases wait, or None: they do not."""
    why = store.records(KIND).get(RELEASES)
    return None if why is None else why.decode()


def lock_releases(store: Store, why: str) -> None:
    """Have releases wait."""
    update_records(store, lambda: ([Record(KIND, RELEASES, why.encode())], None))
