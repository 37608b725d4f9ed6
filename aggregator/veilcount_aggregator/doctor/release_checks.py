"""Central releases: may they be made, and would anybody remember what they have cost?"""

from __future__ import annotations

from collections.abc import Iterator

from veilcount_shared.collection import Model

from ..central.budget_ledger import load_releases
from ..central.journal_registry import registered_journals, unconfirmed_journals
from ..central.privacy_filter import PrivacyFilter
from ..central.release_journal import ReleaseJournal
from ..store.restore_lock import release_lock_reason
from .finding import CheckResult, ok, warn, wrong
from .store_snapshot import StoreSnapshot

RETIRE = (
    "start their hosts; only where one is gone for good: `veilcount store retire-journal ID`, with"
    " its file as --journal if it can be read"
)
UNLOCK = "`veilcount store unlock --journal FILE`, with the journal that releases were written to"


def release_lock(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Look whether releases are locked."""
    why = release_lock_reason(stored.store)
    if why:
        yield wrong(f"locked: {why}", UNLOCK)
    else:
        yield ok("not locked")


def journal(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Look whether the journal is there, can be believed, and agrees with the store."""
    models = {each.collection.model for each in stored.catalog.series.values()}
    if Model.CENTRAL not in models:
        yield ok("none is needed: no collection is central")
    elif stored.journal is None:
        yield warn(
            "nobody said where releases are also written; without it, the server makes none",
            "give --journal FILE, here and to `veilcount serve`",
        )
    else:
        yield from _agrees(stored, stored.journal)


def journals(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Look whether the journals of all hosts have confirmed the store as it is."""
    known, waiting = registered_journals(stored.store), unconfirmed_journals(stored.store)
    for each in waiting:
        last = f"last confirmed it at {each.at}" if each.at else "never confirmed it"
        yield warn(f"journal {each} {last}: releases wait for it", RETIRE)
    if not waiting:
        listed = ": " + ", ".join(map(str, known.values())) if known else ""
        yield ok(f"{len(known)} registered, all have confirmed the store as it is{listed}")


def _agrees(stored: StoreSnapshot, journal: ReleaseJournal) -> Iterator[CheckResult]:
    forgotten = PrivacyFilter(stored.store, journal).forgotten()
    lines, kept = len(journal.lines()), len(load_releases(stored.store))
    if forgotten:
        yield wrong(
            f"{journal.path} remembers {len(forgotten)} releases that the store has forgotten:"
            " their budget would be spent twice",
            UNLOCK,
        )
    elif kept and not lines:
        yield wrong(
            f"{journal.path} is empty or not there, and the store has {kept} releases",
            "give the file that the server writes to, as --journal; if it was lost, take a backup"
            " now: nothing else remembers what is spent",
        )
    else:
        yield ok(f"{journal.path}: its {lines} releases are all in the store")
