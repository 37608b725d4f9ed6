"""The hand-over: what is due of each crowd, one round of it, from wherever the last one ended.

Nothing but what is due moves: there is no "hand over now", and the end of a server hands over
nothing. One process does it at a time: of two, one could publish covers that the other is still
writing, and a batch would leave without them. While our clock is not within an hour of the
aggregator's, all crowds wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from http import HTTPStatus

from veilcount_shared.randomness import RandomSource, SystemRandomSource
from veilcount_shared.shuffling.batch_record import BatchState

from .crowd_folder import CrowdFolder
from .crowd_states import CrowdRow, CrowdState, CrowdStates
from .crowd_store import CrowdStore
from .delivery import Delivery
from .errors import AggregatorAway, NotTaken, ShufflerError
from .served_crowds import REMEMBERED, ServedCrowd
from .shuffling_pass import shuffle

MOST_APART = timedelta(hours=1)
#: on which the aggregator was away before a crowd expires: a clock that jumps erases nothing
LEAST_DAYS_WAITED = 3


@dataclass(frozen=True, slots=True)
class HandOverEvent:
    """What happened in a round, for the log: never a device's doing."""

    what: str
    reason: str = ""
    is_alert: bool = False


@dataclass(frozen=True, slots=True)
class RoundWork:
    """What one round has to do."""

    due: list[ServedCrowd]
    ended: list[bytes]  # crowds to be erased and recorded
    unserved: list[CrowdRow]  # of definitions or keys that this store does not have

    @property
    def is_any(self) -> bool:
        """Whether there is something to do."""
        return bool(self.due or self.ended or self.unserved)


@dataclass(frozen=True, slots=True)
class HandOver:
    """Moves crowds on."""

    store: CrowdStore
    delivery: Delivery
    randomness: RandomSource = field(default_factory=SystemRandomSource)  # of the covers

    @property
    def states(self) -> CrowdStates:
        """The states of the store's crowds."""
        return self.store.states

    def round(self) -> list[HandOverEvent]:
        """Move each crowd as far as it goes now; return what an operator is to know."""
        if not self._work(self.store.clock()).is_any:
            return []
        with self.store.alone():
            return self._round()

    def _round(self) -> list[HandOverEvent]:
        try:
            theirs = self.delivery.aggregator.now()
        except AggregatorAway as error:
            alert = HandOverEvent("aggregator away", str(error), is_alert=True)
            return [alert, *self._wait(self.store.clock())]
        ours = self.store.clock()
        apart = abs(theirs - ours)
        if apart > MOST_APART:
            why = f"our clock and the aggregator's are {apart.total_seconds() / 3600:.1f} h apart"
            return [HandOverEvent("clock", why, is_alert=True)]
        now = min(ours, theirs)  # nothing is due before both clocks say so
        work = self._work(now)
        moved = [event for crowd in work.due for event in self._guarded(crowd, now)]
        ended = [event for crowd_id in work.ended for event in self._finished(crowd_id)]
        return [*moved, *ended, *map(_unserved_event, work.unserved)]

    def _work(self, now: datetime) -> RoundWork:
        """Return what is to be done at an instant."""
        rows = {row.crowd_id: row for row in self.states.rows()}
        served = {crowd.crowd_id: crowd for crowd in self.store.served.all(now)}
        open_rows = [row for row in rows.values() if row.outcome is None]
        unserved = [row for row in open_rows if row.crowd_id not in served and now >= row.closes]
        forgotten = [row for row in unserved if now >= row.closes + REMEMBERED]
        ended = [row for row in rows.values() if row.outcome and not _is_done(row)]
        return RoundWork(
            [
                crowd
                for crowd in served.values()
                if now >= crowd.leaves and not _has_ended(rows.get(crowd.crowd_id))
            ],
            [row.crowd_id for row in (*ended, *forgotten)],
            [row for row in unserved if row not in forgotten],
        )

    # -- one crowd ---------------------------------------------------------------------------------

    def _guarded(self, crowd: ServedCrowd, now: datetime) -> list[HandOverEvent]:
        """Move one crowd; what keeps it back keeps no other."""
        name = f"{crowd.collection.name}, period {crowd.period}"
        try:
            return self._move(crowd, name)
        except AggregatorAway as error:
            waits = HandOverEvent("crowd waits", f"{name}: {error}")
            return [waits, *self._waited(crowd, now)]
        except NotTaken as error:
            if error.status == HTTPStatus.GONE or now >= crowd.expires:
                return self._expired(crowd)
            return [HandOverEvent("crowd refused", f"{name}: {error}", is_alert=True)]
        except Exception as error:  # noqa: BLE001 - other crowds are due as well
            return [HandOverEvent("crowd waits", f"{name}: {type(error).__name__}", is_alert=True)]

    def _move(self, crowd: ServedCrowd, name: str) -> list[HandOverEvent]:
        folder = self.store.folder(crowd.crowd_id)
        row = self._sealed_row(crowd)
        if row.state is CrowdState.SEALED:
            row = self._shuffled(crowd, folder)
        if row.state is CrowdState.SHUFFLED:
            self.store.witness.left(self.delivery.record(row))
            self.delivery.deliver(row, folder, crowd.size)
            self.states.end(crowd.crowd_id, CrowdState.SHUFFLED, BatchState.HANDED_OVER)
        row = self._row(crowd.crowd_id)
        outcome = row.outcome.name.lower().replace("_", " ") if row.outcome else "waiting"
        return [HandOverEvent("crowd ended", f"{name}: {outcome}"), *self._finished(crowd.crowd_id)]

    def _sealed_row(self, crowd: ServedCrowd) -> CrowdRow:
        """Return the row of a crowd that takes no reports any more, begun if nobody came."""
        self.store.begin(crowd)
        self._seal(crowd.crowd_id)
        return self._row(crowd.crowd_id)

    def _seal(self, crowd_id: bytes) -> None:
        if self.states.state(crowd_id) is CrowdState.OPEN:
            with self.store.folder(crowd_id).lock(exclusive=True):
                self.states.seal(crowd_id)

    def _expired(self, crowd: ServedCrowd) -> list[HandOverEvent]:
        """End a crowd that its aggregator takes no more."""
        name = f"{crowd.collection.name}, period {crowd.period}"
        self.end(crowd.crowd_id, BatchState.EXPIRED)
        expired = HandOverEvent("crowd expired", name, is_alert=True)
        return [expired, *self._finished(crowd.crowd_id)]

    def end(self, crowd_id: bytes, outcome: BatchState) -> None:
        """End a crowd of which nothing, or nothing more, is to leave; its files go at once."""
        self._seal(crowd_id)
        self.states.end(crowd_id, self._row(crowd_id).state, outcome)
        self.erase(crowd_id)

    def _shuffled(self, crowd: ServedCrowd, folder: CrowdFolder) -> CrowdRow:
        """Shuffle, and end a crowd that is too small: of it nothing leaves."""
        order = shuffle(crowd, folder, self.store.disk, self.randomness)
        if order.reports < crowd.least:
            self.states.end(crowd.crowd_id, CrowdState.SEALED, BatchState.BELOW_LEAST)
        else:
            self.states.shuffled(crowd.crowd_id, order.reports, order.covers, order.digest)
        return self._row(crowd.crowd_id)

    def _finished(self, crowd_id: bytes) -> list[HandOverEvent]:
        """Erase a crowd that has ended, at once; then the aggregator gets its record.

        One that has not ended was forgotten by a server that stood still for two months.
        """
        try:
            if self._row(crowd_id).outcome is None:
                self.end(crowd_id, BatchState.EXPIRED)
            self.erase(crowd_id)
            row = self._row(crowd_id)
            if not row.recorded:
                self.delivery.send_record(row)
        except NotTaken as error:
            if error.status == HTTPStatus.CONFLICT:  # it has another one, and keeps to it
                self.states.recorded(crowd_id)
            return [HandOverEvent("record refused", str(error), is_alert=True)]
        except AggregatorAway as error:
            return [HandOverEvent("record waits", str(error))]
        except OSError as error:
            return [HandOverEvent("erasure waits", type(error).__name__, is_alert=True)]
        return []

    def erase(self, crowd_id: bytes) -> None:
        """Remove the files of a crowd that has ended."""
        if self.states.state(crowd_id) is CrowdState.ENDED:
            self.store.folder(crowd_id).erase()
            self.states.erased(crowd_id)

    # -- while the aggregator is away --------------------------------------------------------------

    def _wait(self, now: datetime) -> list[HandOverEvent]:
        """Note the day for each crowd that is due; end what has waited for too long."""
        due = [crowd for crowd in self._work(now).due if self.states.row(crowd.crowd_id)]
        return [event for crowd in due for event in self._waited(crowd, now)]

    def _waited(self, crowd: ServedCrowd, now: datetime) -> list[HandOverEvent]:
        """Note the day. A clock that jumps ends nothing: the days must have been lived through."""
        self.states.waited(crowd.crowd_id, _day(now))
        if now < crowd.expires or self._row(crowd.crowd_id).days_waited < LEAST_DAYS_WAITED:
            return []
        return self._expired(crowd)

    def _row(self, crowd_id: bytes) -> CrowdRow:
        row = self.states.row(crowd_id)
        if row is None:
            raise ShufflerError("a crowd of the store has no row")
        return row


def _unserved_event(row: CrowdRow) -> HandOverEvent:
    why = f"{row.fingerprint[:16]}, period {row.period}: load its definitions and keys"
    return HandOverEvent("crowd unserved", why, is_alert=True)


def _has_ended(row: CrowdRow | None) -> bool:
    return row is not None and row.outcome is not None


def _is_done(row: CrowdRow) -> bool:
    return row.state is CrowdState.ERASED and row.recorded


def _day(now: datetime) -> int:
    return now.astimezone(UTC).date().toordinal() - date(2020, 1, 1).toordinal()
