"""The confirmation of a store by the journals of all hosts that release from it.

A store that came back from older files lacks releases that have left, and would pay for others from
the same budget. No single journal notices: each host's has the releases that this host knows. So a
release waits until every registered journal has confirmed the store as it is now.

The journals are registered in the store's records. Each confirms a *view*: the store's incarnation
together with the identities of all registered journals. So a store that was restarted, promoted or
accepted as an older one, and a journal that joined or left, each make a new view, to be confirmed
anew.

**What a journal's host does**, about each second and before each of its own releases:

1. It reads the store's incarnation first: a name that the server process behind the records has
   only until it restarts, or another is promoted (of SQLite: see `sqlite.store`).
2. It compares the store with its journal. If the store lacks a release, it locks releases, in the
   store, for all hosts, with the reason.
3. Else it writes every release of the store into its own journal and the registered journals into
   its state, both durably, and then confirms the present view in the store. A journal that it has
   seen there before, and that is neither there now nor retired, it registers again: all wait for
   it.

**Who releases** reads the incarnation, charges by compare-and-set on the generation in a store all
of whose journals have confirmed this incarnation and this membership, writes the journal, and reads
the incarnation again: if it differs, the answer does not leave. Nothing leaves, repeats included,
unless the ledger as it stands is within the budget.

**Why no budget is spent twice.** Let r be an answer that left host h in incarnation I. Its line was
on h's disk, and the incarnation still I after that. Let the store then go back to a state without
r, in a new incarnation I'.

- If h is registered in that state, nothing is released before h confirms I', and h finds r missing:
  what reads the journal for the confirmation has read I' before. Either r was written by then, or
  whoever writes it reads I' afterwards and keeps the answer back.
- If h is not registered there, r was charged under a view with h in it. Every other journal of that
  view had confirmed it, with h durably in its state. Nothing is released without the confirmation
  of those that are registered, and each of them registers h before it confirms.
- If none of them is registered there, those whose hosts run register themselves, and h, within a
  tick. So a journal that has just been made releases nothing for `SETTLING_SECONDS`, where other
  hosts may exist.

An operator's unlock excuses no line of a journal: one that still has more than the store locks
again. Before any of this, each host compares the store with the height that it has acknowledged
(`store.acknowledged`), and refuses an older one until an operator accepts it; the argument above
does not rest on that.

**What cannot be noticed**: all journals that knew of a release are lost together with the store's
record of it, or are retired without their files; a machine with a *running* Redis restored from a
snapshot of its memory keeps its incarnation, and is noticed by the next look at its height, not at
once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from ..errors import ReleasesWaiting, StoreReadOnly, StoreUnfit, StoreWentBack
from ..store import Record, RecordStore
from ..store.records import update_records
from ..store.restore_lock import KIND as LOCK
from ..store.restore_lock import RELEASES, release_lock_reason
from .budget_ledger import KIND_PREFIX, ReleasePrice, parse_release, release_records
from .journal_state import JournalState, StateFile, StateFileBusy
from .release_journal import DigestCache, ReleaseJournal, VerifySeal, encode_line

JOURNAL = "journal"
RETIRED = "journal-retired"


@dataclass(frozen=True, slots=True)
class RegisteredJournal:
    """One registered journal, and the view that it confirmed last."""

    id: str
    label: str
    view: str = ""
    at: str = ""  # when it confirmed that, to the second, UTC; "": never

    def __str__(self) -> str:
        return f"{self.label} ({self.id})"

    def record(self) -> Record:
        """Return it as it is kept."""
        return Record(JOURNAL, self.id, json.dumps(asdict(self), sort_keys=True).encode())


def registered_journals(store: RecordStore) -> dict[str, RegisteredJournal]:
    """Return the registered journals, by identity."""
    records = store.records(JOURNAL)
    return {id_: RegisteredJournal(**json.loads(value)) for id_, value in sorted(records.items())}


def view_digest(incarnation: str, journals: Iterable[str]) -> str:
    """Return the name of a view."""
    return hashlib.sha256("\n".join([incarnation, *sorted(journals)]).encode()).hexdigest()[:32]


def without_confirmation(
    journals: Mapping[str, RegisteredJournal], incarnation: str
) -> list[RegisteredJournal]:
    """Return the journals that have not confirmed the present view."""
    present = view_digest(incarnation, journals)
    return [journal for journal in journals.values() if journal.view != present]


def unconfirmed_journals(store: RecordStore) -> list[RegisteredJournal]:
    """Return the journals that releases from this store wait for."""
    journals = registered_journals(store)
    return without_confirmation(journals, store.incarnation()) if journals else []


FORGOTTEN = "the journal remembers releases that the store does not: a budget would be spent twice"

KINDS = frozenset({JOURNAL, RETIRED, LOCK})
SETTLING_SECONDS = 5.0
LOCK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ReleaseRecords:
    """The records of a store that decide whether it may release."""

    journals: Mapping[str, RegisteredJournal]
    retired: frozenset[str]
    releases: Mapping[bytes, bytes]  # records by the seals of their lines

    @classmethod
    def load(cls, store: RecordStore, price: DigestCache[ReleasePrice]) -> ReleaseRecords:
        """Read them."""
        return cls(
            registered_journals(store),
            frozenset(store.records(RETIRED)),
            {
                price(release_record).seal: release_record
                for release_record in release_records(store)
            },
        )

    def lost(self, state: JournalState) -> dict[str, str]:
        """Return the journals that a host has seen here and that are neither there nor retired."""
        gone = state.members.keys() - self.journals.keys() - self.retired
        return {id_: state.members[id_] for id_ in sorted(gone)}


class StoreConfirmer:
    """The procedure above, for one store and the journal of one host."""

    def __init__(
        self,
        store: RecordStore,
        journal: ReleaseJournal,
        price: DigestCache[ReleasePrice],
        verify: VerifySeal,
        settling: float,  # how long a new journal waits
    ) -> None:
        self._store = store
        self._journal = journal
        self._file = StateFile.for_journal(journal.path)
        self._price = price
        self._verify = verify
        self._settling = settling
        self._checked: tuple[str, Mapping[str, int]] | None = None

    def tick(self, now: datetime) -> None:
        """Confirm, if any record that matters to releases has changed since this process did."""
        present = self._store.incarnation(), _relevant(self._store.generations())
        if present == self._checked:
            return
        # A store that is read-only or went back releases nothing; a process of this host that is at
        # it does it for all.
        with suppress(StoreReadOnly, StoreWentBack, StateFileBusy):
            with self._file.locked(0):
                self._confirm(now)
            self._checked = present

    def confirm(self, now: datetime) -> str:
        """Confirm the store as it is, or lock its releases; return the journal's identity."""
        with self._file.locked(LOCK_SECONDS):
            return self._confirm(now)

    def require_settled(self, now: datetime) -> None:
        """Refuse a release from a journal that has just been made."""
        state = self._file.load()
        if state is not None and 0 <= state.age(now) < self._settling:
            raise ReleasesWaiting(
                f"releases wait {self._settling:g} s after a journal is first registered, for hosts"
                " that know of others: ask again then"
            )

    def _confirm(self, now: datetime) -> str:
        incarnation = self._store.incarnation()  # before the journal is read, see above
        return update_records(self._store, lambda: self._decide(incarnation, now))

    def _decide(self, incarnation: str, now: datetime) -> tuple[list[Record], str]:
        try:
            state = self._file.load() or JournalState.new(now)
            # The journal first: what it holds is in the store already, unless the store went back.
            lines = [seal for seal, _ in self._journal.sealed(self._verify)]
        except StoreUnfit as error:
            return self._lock(str(error)), ""
        seen = ReleaseRecords.load(self._store, self._price)
        if not seen.releases.keys() >= set(lines):
            named = f"journal {state.label} ({state.id}): {FORGOTTEN}"
            return [*self._lock(named), *_unconfirmed(seen.lost(state))], ""
        if state.id in seen.retired:  # its host is back, with a new journal
            state = state.renewed(now)
        return self._confirmed(seen, state, lines, incarnation, now), state.id

    def _confirmed(
        self,
        seen: ReleaseRecords,
        state: JournalState,
        lines: Sequence[bytes],
        incarnation: str,
        now: datetime,
    ) -> list[Record]:
        """Keep what was seen, durably; then return the records that confirm it."""
        lost = {id_: label for id_, label in seen.lost(state).items() if id_ != state.id}
        # Oneself only once one was seen there: who is stopped before has never been registered.
        members = lost | {journal.id: journal.label for journal in seen.journals.values()}
        missing = seen.releases.keys() - set(lines)
        if missing or not self._journal.path.exists():
            self._journal.add(
                missing, lambda seal: encode_line(parse_release(seen.releases[seal]).line())
            )
        self._file.save(replace(state, members=members))
        present = view_digest(incarnation, {*members, state.id})
        mine = seen.journals.get(state.id)
        if mine is not None and mine.view == present:
            return _unconfirmed(lost)
        at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        mine = RegisteredJournal(state.id, state.label, present, at)
        return [*_unconfirmed(lost), mine.record()]

    def _lock(self, why: str) -> list[Record]:
        return [] if release_lock_reason(self._store) else [Record(LOCK, RELEASES, why.encode())]


def _relevant(generations: Mapping[str, int]) -> dict[str, int]:
    """Return the generations of the kinds of records that `ReleaseRecords` are read from."""
    return {
        kind: generation
        for kind, generation in generations.items()
        if kind in KINDS or kind.startswith(KIND_PREFIX)
    }


def _unconfirmed(journals: Mapping[str, str]) -> list[Record]:
    return [RegisteredJournal(id_, label).record() for id_, label in journals.items()]
