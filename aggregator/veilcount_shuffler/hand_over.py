"""The hand-over: what is due of each crowd, one round of it, from wherever the last one ended.

Nothing but what is due moves: there is no "hand over now", and the end of a server hands over
nothing. While our clock is not within an hour of the aggregator's, all crowds wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from http import HTTPStatus

from veilcount_shared.shuffling.batch_record import BatchState

from .crowd_folder import CrowdFolder
from .crowd_states import CrowdRow, CrowdState, CrowdStates
from .crowd_store import CrowdStore
from .delivery import Delivery
from .errors import AggregatorAway, NotTaken, ShufflerError
from .served_crowds import ServedCrowd
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
class HandOver:
    """Moves crowds on."""

    store: CrowdStore
    delivery: Delivery

    @property
    def states(self) -> CrowdStates:
        """The states of the store's crowds."""
        return self.store.states

    def round(self) -> list[HandOverEvent]:
        """Move each crowd as far as it goes now; return what an operator is to know."""
        now = self.store.clock()
        rows = {row.crowd_id: row for row in self.states.rows()}
        served = {crowd.crowd_id: crowd for crowd in self.store.served.all(now)}
        due = [
            crowd
            for crowd in served.values()
            if now >= crowd.leaves and not _has_ended(rows.get(crowd.crowd_id))
        ]
        ended = [row for row in rows.values() if row.outcome and not _is_done(row)]
        forgotten = [row for row in rows.values() if not row.outcome and row.crowd_id not in served]
        if not due and not ended and not forgotten:
            return []
        try:
            apart = abs(self.delivery.aggregator.now() - self.store.clock())
        except AggregatorAway as error:
            return [
                HandOverEvent("aggregator away", str(error), is_alert=True),
                *self._wait(due, now),
            ]
        if apart > MOST_APART:
            why = f"our clock and the aggregator's are {apart.total_seconds() / 3600:.1f} h apart"
            return [HandOverEvent("clock", why, is_alert=True)]
        moved = [event for crowd in due for event in self._guarded(crowd, now)]
        return moved + [
            event for row in [*ended, *forgotten] for event in self._finished(row.crowd_id)
        ]

    # -- one crowd ---------------------------------------------------------------------------------

    def _guarded(self, crowd: ServedCrowd, now: datetime) -> list[HandOverEvent]:
        """Move one crowd; what keeps it back keeps no other."""
        name = f"{crowd.collection.name}, period {crowd.period}"
        try:
            return self._move(crowd, name, now)
        except AggregatorAway as error:
            self.states.waited(crowd.crowd_id, _day(now))
            return [HandOverEvent("crowd waits", f"{name}: {error}")]
        except NotTaken as error:
            return [HandOverEvent("crowd refused", f"{name}: {error}", is_alert=True)]
        except (OSError, ShufflerError) as error:
            return [HandOverEvent("crowd waits", f"{name}: {type(error).__name__}", is_alert=True)]

    def _move(self, crowd: ServedCrowd, name: str, now: datetime) -> list[HandOverEvent]:
        folder = self.store.folder(crowd.crowd_id)
        row = self._sealed_row(crowd)
        if now >= crowd.expires:
            self._expire(row)
            return [
                HandOverEvent("crowd expired", name, is_alert=True),
                *self._finished(crowd.crowd_id),
            ]
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

    def _expire(self, row: CrowdRow) -> None:
        self.end(row.crowd_id, BatchState.EXPIRED)

    def end(self, crowd_id: bytes, outcome: BatchState) -> None:
        """End a crowd of which nothing, or nothing more, is to leave; its files go at once."""
        self._seal(crowd_id)
        self.states.end(crowd_id, self._row(crowd_id).state, outcome)
        self.erase(crowd_id)

    def _shuffled(self, crowd: ServedCrowd, folder: CrowdFolder) -> CrowdRow:
        """Shuffle, and end a crowd that is too small: of it nothing leaves."""
        order = shuffle(crowd, folder, self.store.disk)
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

    def _wait(self, due: list[ServedCrowd], now: datetime) -> list[HandOverEvent]:
        """Note the day; end what has waited for too long."""
        events = []
        for crowd in due:
            row = self.states.row(crowd.crowd_id)
            if row is None:
                continue
            self.states.waited(crowd.crowd_id, _day(now))
            if now >= crowd.expires and self._row(crowd.crowd_id).days_waited >= LEAST_DAYS_WAITED:
                self._expire(row)
                name = f"{crowd.collection.name}, period {crowd.period}"
                events.append(HandOverEvent("crowd expired", name, is_alert=True))
        return events

    def _row(self, crowd_id: bytes) -> CrowdRow:
        row = self.states.row(crowd_id)
        if row is None:
            raise ShufflerError("a crowd of the store has no row")
        return row


def _has_ended(row: CrowdRow | None) -> bool:
    return row is not None and row.outcome is not None


def _is_done(row: CrowdRow) -> bool:
    return row.state is CrowdState.ERASED and row.recorded


def _day(now: datetime) -> int:
    return now.astimezone(UTC).date().toordinal() - date(2020, 1, 1).toordinal()
