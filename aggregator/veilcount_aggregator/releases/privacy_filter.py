"""The privacy filter: every central release is charged to a budget that outlives the process.

A pure filter per (series, period): what a period paid for may not add up to more than its budget,
whatever the queries and their order. Charge, draw and result are one change of the records: whoever
loses a race draws again, and nobody has seen the first draw. A repeated query has the same answer,
free. Before an answer leaves, the host's journal has it too, and the journals of all hosts have
confirmed the store: one that came back from older files releases nothing until what it lacks is
entered again (`store_confirmation` has the argument). What was entered again may be more than a
budget pays for; then nothing leaves of that period any more, since not all of it may have left.

Each release reads all that were made before, from the store and from the journal: another process
may have made one, and the store may have forgotten one. What was read before is not decoded again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

from veilcount_analysis.releases.priced_query import PricedQuery
from veilcount_analysis.series.series import Series, utc_day
from veilcount_serving.errors import SettingsError
from veilcount_shared.schedule import period_end

from ..errors import JournalMissing, PeriodStillOpen, ReleasesLocked, ReleasesWaiting
from ..records.audit_log import audit_record
from ..store import Record, Store
from ..store.records import update_records
from ..store.restore_lock import KIND as LOCK
from ..store.restore_lock import RELEASES, release_lock_reason
from .budget_ledger import (
    ReleaseContent,
    ReleasePrice,
    StoredRelease,
    is_overspent,
    parse_release,
    record_kind,
    release_records,
    require_budget,
)
from .journal_state import StateFile
from .release_journal import DigestCache, ReleaseJournal, encode_line, parse_line, verified_seal
from .store_confirmation import (
    JOURNAL,
    RETIRED,
    RegisteredJournal,
    StoreConfirmer,
    registered_journals,
    without_confirmation,
)


class PaidRelease(NamedTuple):
    """A release, whether it was charged now, and the prices of its series' releases afterwards."""

    release: StoredRelease
    charged: bool
    prices: Sequence[ReleasePrice]


class PrivacyFilter:
    """The only way to a release: it charges budgets, and writes the journal before one leaves."""

    def __init__(self, store: Store, journal: ReleaseJournal | None, settling: float = 0.0) -> None:
        """`settling`: seconds that a new journal waits, where other hosts may exist."""
        self.store = store
        self.journal = journal
        self._price = DigestCache(ReleasePrice.from_record)
        self._verify = DigestCache(verified_seal)
        self._confirmer = (
            None
            if journal is None
            else StoreConfirmer(store, journal, self._price, self._verify, settling)
        )

    def release(
        self,
        series: Series,
        question: PricedQuery,
        draw: Callable[[], ReleaseContent],
        now: datetime,
        actor: str,
    ) -> PaidRelease:
        """Return the answer, charged and durable; or the one that was given before."""
        confirmer = self._confirmer
        if self.journal is None or confirmer is None:
            raise JournalMissing(
                "nothing was released or charged: releases are written to a journal before they"
                " leave, and this server has none. The operator starts it with --journal FILE, the"
                " file that earlier releases were written to"
            )
        self._require_whole_store()
        mine = confirmer.confirm(now)
        incarnation = self.store.incarnation()

        def decide() -> tuple[list[Record], tuple[StoredRelease, bool]]:
            self._require_confirmed(mine, incarnation)
            confirmer.require_settled(now)
            return self._decide(series, question, draw, now, actor)

        stored_release, charged = update_records(self.store, decide)
        # Those before it too: whoever made them may have died before their lines were written.
        records = release_records(self.store, series.fingerprint)
        prices = list(map(self._price, records))
        texts = {price.seal: record for price, record in zip(prices, records, strict=True)}
        self._require_same(incarnation)  # or the journal would remember what the store has lost
        self.journal.add(texts, lambda seal: encode_line(parse_release(texts[seal]).line()))
        self._require_same(incarnation)  # only now: see `store_confirmation`
        return PaidRelease(stored_release, charged, prices)

    def prices(self, series: Series) -> list[ReleasePrice]:
        """Return the prices of a series' releases, the oldest first."""
        return list(map(self._price, release_records(self.store, series.fingerprint)))

    def _decide(
        self,
        series: Series,
        question: PricedQuery,
        draw: Callable[[], ReleaseContent],
        now: datetime,
        actor: str,
    ) -> tuple[list[Record], tuple[StoredRelease, bool]]:
        records = release_records(self.store, series.fingerprint)
        earlier = list(map(self._price, records))
        for earlier_release, record in zip(earlier, records, strict=True):
            if earlier_release.canonical == question.canonical and not is_overspent(
                series, earlier_release, earlier
            ):
                return [], (parse_release(record), False)
        require_closed_periods(series, question.charges, utc_day(now))
        require_budget(series, question.charges, earlier)
        new = _stored_release(series, question, draw(), now, actor)
        act = audit_record(self.store, now, actor, "release", series.collection.name)
        return [new.record(len(earlier)), act], (new, True)

    # -- the journals against the store --------------------------------------------------------

    def tick(self, now: datetime) -> None:
        """Confirm the store for this host, or lock releases; cheap if nothing has changed."""
        if self._confirmer is not None:
            self._confirmer.tick(now)

    def _require_whole_store(self) -> None:
        if self.store.losses():
            raise ReleasesLocked(
                "releases are frozen: the store lacks commits that this host has acknowledged; the"
                " operator restores its data, or accepts the loss with `veilcount store accept`"
            )

    def _require_confirmed(self, mine: str, incarnation: str) -> None:
        self._require_whole_store()
        if release_lock_reason(self.store):
            raise ReleasesLocked(
                "releases are locked: the store may have forgotten what was spent; the operator "
                "enters it again with `veilcount store unlock --journal FILE`"
            )
        journals = registered_journals(self.store)
        waited_for = without_confirmation(journals, incarnation)
        if mine not in journals or waited_for:
            raise ReleasesWaiting(_waiting(waited_for))

    def _require_same(self, incarnation: str) -> None:
        """Withhold an answer whose charge may be lost; if it is not lost, asking again is free."""
        if self.store.incarnation() != incarnation:
            raise ReleasesWaiting(_waiting([]))

    def forgotten(self) -> list[StoredRelease]:
        """Return what the journal remembers and the store does not."""
        if self.journal is None:
            return []
        # The journal first: what it holds is in the store already, unless the store forgot.
        remembered = dict(self.journal.sealed(self._verify))
        here = {self._price(release_record).seal for release_record in release_records(self.store)}
        return [
            StoredRelease.from_json(parse_line(text))
            for seal, text in remembered.items()
            if seal not in here
        ]

    def restore_missing(self, now: datetime, actor: str) -> list[StoredRelease]:
        """Enter again what was forgotten, and open the lock; return what was entered."""
        if self.journal is None or not self.journal.path.exists():
            path = str(self.journal.path) if self.journal else ""
            raise SettingsError(
                "journal",
                path,
                "no such file: give the one that releases were written to, or an empty one if"
                " nothing was ever released",
            )

        def decide() -> tuple[list[Record], list[StoredRelease]]:
            missing = self.forgotten()
            act = audit_record(self.store, now, actor, "store unlock", f"{len(missing)} releases")
            opened = Record(LOCK, RELEASES, None)
            return [*self._appended(missing), *self._known(), act, opened], missing

        return update_records(self.store, decide)

    def retire(self, id_: str, now: datetime, actor: str) -> list[StoredRelease]:
        """Wait for a journal no more; enter first what its file, if there is one, remembers."""
        if self.journal is not None:
            _refuse_other_journal(self.journal, id_)

        def decide() -> tuple[list[Record], list[StoredRelease]]:
            journal = registered_journals(self.store).get(id_)
            if journal is None:
                journal_ids = ", ".join(registered_journals(self.store)) or "none is registered"
                raise SettingsError("ID", id_, f"no such journal: {journal_ids}")
            missing = self.forgotten()
            act = audit_record(self.store, now, actor, "journal retired", str(journal))
            gone = [Record(JOURNAL, id_, None), Record(RETIRED, id_, journal.label.encode())]
            return [*self._appended(missing), *self._known(but=id_), act, *gone], missing

        return update_records(self.store, decide)

    def _known(self, but: str = "") -> list[Record]:
        """Return the journals that this one's host knew and the store does not: to wait for."""
        state = StateFile.for_journal(self.journal.path).load() if self.journal else None
        if state is None:  # several journals in one file: each host that runs adds what it knows
            return []
        there = registered_journals(self.store).keys() | self.store.records(RETIRED).keys() | {but}
        members = sorted(state.members.items())
        return [
            RegisteredJournal(id_, label).record() for id_, label in members if id_ not in there
        ]

    def _appended(self, missing: Iterable[StoredRelease]) -> list[Record]:
        """Return records that are appended to those in the store; none is overwritten."""
        places: dict[str, int] = {}
        records = []
        for release in missing:
            kind = record_kind(release.fingerprint)
            place = places.get(kind, self.store.record_count(kind))
            records.append(release.record(place))
            places[kind] = place + 1
        return records


def _stored_release(
    series: Series, question: PricedQuery, answer: ReleaseContent, now: datetime, actor: str
) -> StoredRelease:
    """Return a new release as it will be read: to JSON and back, numbers and lists are the same."""
    charges = {str(period): charge for period, charge in question.charges.items()}
    day = utc_day(now).isoformat()
    stored_release = StoredRelease(
        series.fingerprint, question.canonical, charges, answer, day, actor
    )
    return StoredRelease.from_json(json.loads(json.dumps(stored_release.line())))


def _refuse_other_journal(journal: ReleaseJournal, id_: str) -> None:
    """Refuse a file that is not there, or is another journal's."""
    if not journal.path.exists():
        raise SettingsError(
            "journal", str(journal.path), "no such file: leave it out if it is lost"
        )
    state = StateFile.for_journal(journal.path).load()
    if state is not None and state.id != id_:
        raise SettingsError("journal", str(journal.path), f"it is {state.id}'s: retire that one")


def _waiting(journals: Sequence[RegisteredJournal]) -> str:
    if not journals:
        return "the store was restarted or replaced meanwhile: ask again in some seconds"
    named = ", ".join(map(str, journals))
    return (
        f"releases wait for {len(journals)} journals to confirm the store: {named}. Each does so"
        " within seconds while its host runs; one that is gone for good, the operator retires with"
        " `veilcount store retire-journal ID`"
    )


def require_closed_periods(series: Series, charges: Iterable[int], day: date) -> None:
    """Refuse periods that are still open."""
    oldest, _ = series.open_periods(day)
    newest = max(charges)
    if newest < oldest:
        return
    late = timedelta(days=series.collection.late)
    raise PeriodStillOpen(
        f"to: period {newest} is still open until {_closes(series, newest) + late}: ask for it from"
        f" that day on{_instead(series, oldest)}"
    )


def _instead(series: Series, oldest: int) -> str:
    if not oldest:
        return ""
    return f", or up to {_closes(series, oldest - 1) - timedelta(days=1)}"


def _closes(series: Series, period: int) -> date:
    return period_end(series.collection, period).date()
