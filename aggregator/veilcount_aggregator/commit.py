"""Leader/follower group commit: many requests, one durable transaction.

The first request in leads and commits alone; those that arrive meanwhile form the next group, whose
first then leads. So a group is as large as the store is slow, with no timer and no thread. Where a
store has several lanes (the shards of a cluster), each has a queue of its own, and a group is one
transaction of one lane. What waits is bounded: beyond it a request is told to come back.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

from .errors import Busy, StoreError, StoreUnavailable
from .notebook import Notebook
from .store import Codes, Note, Spends, Store

MOST_WAITING = 50_000  # reports: some 3 MB
MOST_AT_ONCE = 2_000
RETRY_SECONDS = 2
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
GROUP = "group"


class _Ticket:
    """One request's place in the queue."""

    __slots__ = ("codes", "error", "reports", "spends", "turn")

    def __init__(self, spends: Sequence[Spends]) -> None:
        self.spends = spends
        self.reports = sum(map(len, spends))
        self.codes: list[Codes] | None = None
        self.error: BaseException | None = None
        self.turn = threading.Lock()  # held until it is settled, or made to lead
        self.turn.acquire()

    @property
    def settled(self) -> bool:
        return self.codes is not None or self.error is not None


class Committer:
    """A queue in front of each lane of a store."""

    def __init__(self, store: Store, notebook: Notebook, most_waiting: int = MOST_WAITING) -> None:
        """Stand in front of this store."""
        self._store = store
        self._notebook = notebook
        self._most = most_waiting
        self._lanes: dict[int, _Lane] = {}

    def commit(self, spends: Sequence[Spends]) -> list[Codes]:
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
        return sum(lane.waiting for lane in list(self._lanes.values()))

    def _lane(self, number: int) -> _Lane:
        # One step, so that two threads never have a lane each of one number.
        return self._lanes.get(number) or self._lanes.setdefault(number, _Lane(self._write))

    def _admit(self, ticket: _Ticket) -> None:
        """Turn a request away where too much waits; a lone one is never too large."""
        waiting = self.waiting
        if waiting and waiting + ticket.reports > self._most:
            raise Busy(RETRY_SECONDS, f"{waiting:,} reports wait for the store already")

    def _write(self, group: list[_Ticket]) -> None:
        self._notebook.note(Note(GROUP, "", -1, str(_size(len(group)))))
        notes = self._notebook.take()
        try:
            codes = self._store.commit([each for ticket in group for each in ticket.spends], notes)
        except BaseException:
            self._notebook.put_back(notes)
            raise
        given = iter(codes)
        for ticket in group:
            ticket.codes = list(islice(given, len(ticket.spends)))


class _Lane:
    """One queue, led by whoever stands first in it."""

    def __init__(self, write: Callable[[list[_Ticket]], None]) -> None:
        self.waiting = 0
        self._write = write
        self._lock = threading.Lock()
        self._queue: deque[_Ticket] = deque()
        self._led = False

    def pass_through(self, ticket: _Ticket) -> None:
        """Return when the ticket is settled."""
        if not self._join(ticket):
            ticket.turn.acquire()  # woken when settled, or to lead the next group
        if not ticket.settled:
            self._lead()

    def _join(self, ticket: _Ticket) -> bool:
        """Stand in the queue; say whether this request leads."""
        with self._lock:
            self._queue.append(ticket)
            self.waiting += ticket.reports
            leads, self._led = not self._led, True
            return leads

    def _lead(self) -> None:
        """Commit the group at the head of the queue; wake it, and the next one's first."""
        group = self._head()
        try:
            self._settle(group)
        finally:  # also where the worker is being stopped: nobody is left waiting
            with self._lock:
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
                if reports > MOST_AT_ONCE:
                    break
                group.append(ticket)
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


def _size(requests: int) -> int:
    """Return the size class of a group."""
    return next((size for size in SIZES if requests <= size), SIZES[-1])
