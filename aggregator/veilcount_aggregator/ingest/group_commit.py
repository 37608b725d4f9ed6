"""Leader/follower group commit: many requests, one durable transaction.

The first request in leads and commits alone; those that arrive meanwhile form the next group, whose
first then leads. So a group is as large as the store is slow, with no timer and no thread. Where a
store has several lanes (the masters of a cluster), each has a queue of its own, and a group is one
transaction in each shard of its lane. What waits is bounded: beyond it a request has to come back.

A lane that hangs must not take all threads of the process, which the other lanes need. While its
group has been under way for more than a second, only the first few requests stay: the others, and
those that arrive, are asked to come back. A request that was sent already and left is safe to
repeat: if it was counted, it is a duplicate.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

from ..errors import Overloaded, StoreError, StoreUnavailable
from ..store import UNDECIDED, Codes, SeriesReports, ServiceCounter, Store
from .service_counters import ServiceCounters

MAX_WAITING_REPORTS = 50_000  # reports: some 3 MB
MAX_GROUP_REPORTS = 2_000
RETRY_SECONDS = 2
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
GROUP = "group"
COMMITS = "commits"
COMMIT_MICROSECONDS = "commit_microseconds"
STALL_SECONDS = 1.0
MAX_STALLED_REQUESTS = 8  # requests that stay in a lane that hangs, of 32 threads
SEVERAL = -1


class _Ticket:
    """One request's place in the queue."""

    __slots__ = ("codes", "error", "reports", "spends", "turn")

    def __init__(self, spends: Sequence[SeriesReports]) -> None:
        self.spends = spends
        self.reports = sum(map(len, spends))
        self.codes: list[Codes] | None = None
        self.error: BaseException | None = None
        self.turn = threading.Lock()  # held until it is settled, or made to lead
        self.turn.acquire()

    @property
    def settled(self) -> bool:
        return self.codes is not None or self.error is not None


class GroupCommitter:
    """A queue in front of each lane of a store."""

    def __init__(
        self,
        store: Store,
        service_counters: ServiceCounters,
        most_waiting: int = MAX_WAITING_REPORTS,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """Stand in front of this store; `seconds` is a clock that never goes back."""
        self._store = store
        self._service_counters = service_counters
        self._seconds = seconds
        self._most = most_waiting
        self._lanes: dict[int, _Lane] = {}

    def commit(self, spends: Sequence[SeriesReports]) -> list[Codes]:
        """Return each report's verdict once its group is durable."""
        ticket = _Ticket(spends)
        self._admit(ticket)
        self._lane(self._store.lane(spends)).pass_through(ticket)
        if ticket.error is not None:
            raise ticket.error
        assert ticket.codes is not None  # noqa: S101 - a ticket is settled with one of the two
        return ticket.codes

    @property
    def waiting(self) -> int:
        """How many reports wait for the store."""
        return sum(self.queues().values())

    def queues(self) -> dict[int, int]:
        """Return how many reports wait in each lane."""
        return {number: lane.waiting for number, lane in list(self._lanes.items())}

    def _lane(self, number: int) -> _Lane:
        # One step, so that two threads never have a lane each of one number.
        return self._lanes.get(number) or self._lanes.setdefault(
            number,
            _Lane(lambda group: self._write(number, group), self._has_several, self._seconds),
        )

    def _has_several(self) -> bool:
        """Whether other lanes may need what waits in one."""
        return len(self._lanes) > 1

    def _admit(self, ticket: _Ticket) -> None:
        """Turn a request away where too much waits; a lone one is never too large."""
        waiting = self.waiting
        if waiting and waiting + ticket.reports > self._most:
            raise Overloaded(RETRY_SECONDS, f"{waiting:,} reports wait for the store already")

    def _write(self, lane: int, group: list[_Ticket]) -> None:
        self._service_counters.count(ServiceCounter(GROUP, "", -1, str(_size(len(group)))))
        notes = self._service_counters.take()
        begun = self._seconds()
        try:
            codes = self._store.commit([each for ticket in group for each in ticket.spends], notes)
        except BaseException:
            self._service_counters.restore(notes)
            raise
        self._note_latency(lane, self._seconds() - begun)
        remaining = iter(codes)
        for ticket in group:
            found = list(islice(remaining, len(ticket.spends)))
            if found and all((each == UNDECIDED).all() for each in found):
                ticket.error = StoreUnavailable("all shards of this request's reports are away")
            else:
                ticket.codes = found

    def _note_latency(self, lane: int, seconds: float) -> None:
        self._service_counters.count(ServiceCounter(COMMITS, "", -1, str(lane)))
        self._service_counters.count(
            ServiceCounter(COMMIT_MICROSECONDS, "", -1, str(lane)), round(seconds * 1e6)
        )


class _Lane:
    """One queue, led by whoever stands first in it."""

    def __init__(
        self,
        write: Callable[[list[_Ticket]], None],
        has_others: Callable[[], bool],
        seconds: Callable[[], float],
    ) -> None:
        self.waiting = 0
        self._seconds = seconds
        self._write = write
        self._has_others = has_others
        self._begun: float | None = None  # when the group under way was sent
        self._lock = threading.Lock()
        self._queue: deque[_Ticket] = deque()
        self._under_way: Sequence[_Ticket] = ()
        self._led = False

    def pass_through(self, ticket: _Ticket) -> None:
        """Return when the ticket is settled."""
        if not self._join(ticket):
            while not ticket.turn.acquire(timeout=STALL_SECONDS):  # settled, or to lead the next
                if self._leave(ticket):
                    return
        if not ticket.settled:
            self._lead()

    def _join(self, ticket: _Ticket) -> bool:
        """Stand in the queue; say whether this request leads."""
        with self._lock:
            if self._hangs() and len(self._queue) >= MAX_STALLED_REQUESTS:
                raise _stalled()
            self._queue.append(ticket)
            self.waiting += ticket.reports
            leads, self._led = not self._led, True
            return leads

    def _leave(self, ticket: _Ticket) -> bool:
        """Give up where the lane hangs, unless among its first; whoever leads is always first."""
        with self._lock:
            if ticket.settled or not self._hangs() or ticket not in self._queue:
                return False
            if self._queue.index(ticket) < MAX_STALLED_REQUESTS:
                return False
            if ticket not in self._under_way:  # else its leader takes it off the queue
                self._queue.remove(ticket)
                self.waiting -= ticket.reports
            ticket.error = _stalled()
            return True

    def _hangs(self) -> bool:
        """Whether the group under way takes too long for requests that other lanes could use."""
        begun = self._begun
        return begun is not None and self._seconds() - begun > STALL_SECONDS and self._has_others()

    def _lead(self) -> None:
        """Commit the group at the head of the queue; wake it, and the next one's first."""
        group = self._head()
        try:
            self._settle(group)
        finally:  # also where the worker is being stopped: nobody is left waiting
            with self._lock:
                self._begun, self._under_way = None, ()
                for ticket in group:
                    self._queue.popleft()
                    self.waiting -= ticket.reports
                following = self._queue[0] if self._queue else None
                self._led = following is not None
            for ticket in group[1:]:
                if not ticket.settled:
                    ticket.error = StoreUnavailable("the worker stopped in the middle: ask again")
                ticket.turn.release()
            if following is not None:
                following.turn.release()

    def _head(self) -> list[_Ticket]:
        with self._lock:
            group, reports = [self._queue[0]], self._queue[0].reports
            for ticket in islice(self._queue, 1, None):
                reports += ticket.reports
                if reports > MAX_GROUP_REPORTS:
                    break
                group.append(ticket)
            self._begun, self._under_way = self._seconds(), group
            return group

    def _settle(self, group: list[_Ticket]) -> None:
        """Give each ticket its codes or its error. One request never spoils another's."""
        try:
            self._write(group)
        except StoreError as error:
            for ticket in group:
                ticket.error = error
        except Exception as error:  # noqa: BLE001 - raised again, by whoever it belongs to
            if len(group) == 1:
                group[0].error = error
                return
            for ticket in group:
                self._settle([ticket])


def _stalled() -> StoreUnavailable:
    return StoreUnavailable(
        f"the shard of this report has not answered a commit for {STALL_SECONDS:g} s"
    )


def _size(requests: int) -> int:
    """Return the size class of a group."""
    return next((size for size in SIZES if requests <= size), SIZES[-1])
