"""Checks of central releases: locks, the journal, and its agreement with the store."""

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
    "start their hosts; only if one is gone for good: `veilcount store retire-journal ID`, with"
    " its file as --journal if it can be read"
)
UNLOCK = "`veilcount store unlock --journal FILE`, with the journal that releases were written to"


def release_lock(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check whether releases are locked."""
    why = release_lock_reason(stored.store)
    if why:
        yield wrong(f"locked: {why}", UNLOCK)
    else:
        yield ok("not locked")


def journal(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check that the journal exists, is trustworthy and agrees with the store."""
    models = {each.collection.model for each in stored.catalog.series.values()}
    if Model.CENTRAL not in models:
        yield ok("none is needed: no collection is central")
    elif stored.journal is None:
        yield warn(
            "no journal is set; without one, the server makes no releases",
            "give --journal FILE, here and to `veilcount serve`",
        )
    else:
        yield from _agrees(stored, stored.journal)


def journals(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check that the journals of all hosts have confirmed the store's incarnation."""
    known, waiting = registered_journals(stored.store), unconfirmed_journals(stored.store)
    for each in waiting:
        last = f"last confirmed it at {each.at}" if each.at else "never confirmed it"
        yield warn(f"journal {each} {last}: releases wait for it", RETIRE)
    if not waiting:
        listed = ": " + ", ".join(map(str, known.values())) if known else ""
        yield ok(f"{len(known)} registered, all have confirmed the store{listed}")


def _agrees(stored: StoreSnapshot, journal: ReleaseJournal) -> Iterator[CheckResult]:
    forgotten = PrivacyFilter(stored.store, journal).forgotten()
    lines, kept = len(journal.lines()), len(load_releases(stored.store))
    if forgotten:
        yield wrong(
            f"{journal.path} has {len(forgotten)} releases that the store lacks:"
            " their budget would be spent twice",
            UNLOCK,
        )
    elif kept and not lines:
        yield wrong(
            f"{journal.path} is empty or missing, and the store has {kept} releases",
            "give the file that the server writes to as --journal; if it was lost, back up the"
            " store now: it is the only record of the spent budget",
        )
    else:
        yield ok(f"{journal.path}: its {lines} releases are all in the store")
