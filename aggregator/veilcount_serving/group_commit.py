"""One thread that takes requests in groups: whatever arrived while the last group was written.

Whoever submits a request does not wait: its outcome is delivered once its group is durable. So a
group is as large as the store is slow. Under load it also waits, three milliseconds at most, until
as many requests are there as the last one had and left waiting: its fixed costs are shared by all
that are under way, and the loop works while this thread sleeps, not beside it. A lone request waits
for nobody.

What waits is bounded, and for how long: beyond either, a request has to come back, and nothing more
is done for it. It is safe to repeat: if it was counted meanwhile, it is a duplicate. A store that
hangs holds up this thread, and nothing else of the process.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import InvalidStateError
from typing import Any, Generic, Protocol, TypeVar

from .errors import Overloaded

MAX_WAITING_BYTES = 8 << 20
MAX_GROUP_BYTES = 512 << 10
#: of them without padding, some 3,000 reports: more in one commit would hold up a busy Redis
MAX_GROUP_CONTENT = 128 << 10
GATHER_SECONDS = 0.003
IDLE_SECONDS = 10  # a thread without work ends, and lets go of its application
RETRY_SECONDS = 2
#: how long a request waits at most: longer than a commit waits for Redis (2 s)
ANSWER_SECONDS = 4.0

Outcome = TypeVar("Outcome")
Taken_contra = TypeVar("Taken_contra", contravariant=True)


class Pending(Protocol[Taken_contra]):
    """Where the outcome of a request is delivered: a future, of a thread or of an event loop."""

    def set_result(self, outcome: Taken_contra, /) -> object:
        """Take the outcome."""

    def done(self) -> bool:
        """Whether nobody waits any more."""


class GroupRequest(Protocol):
    """A request that waits for its group."""

    @property
    def size(self) -> int:
        """How many bytes of memory it has."""

    @property
    def content(self) -> int:
        """How many bytes it has without padding."""

    @property
    def pending(self) -> Pending[Any]:
        """Where its outcome is delivered."""


Request = TypeVar("Request", bound=GroupRequest)


def settle(pending: Pending[Outcome], outcome: Outcome) -> None:
    """Deliver an outcome, unless nobody waits any more."""
    if not pending.done():
        try:  # noqa: SIM105 - `suppress` would cost each request half a microsecond
            pending.set_result(outcome)
        except InvalidStateError:  # the thread that waits gives up just now
            pass


class GroupCommit(Generic[Request, Outcome]):
    """The requests that wait, and the thread that takes them."""

    def __init__(
        self,
        process: Callable[[Sequence[Request]], Sequence[Outcome]],
        failed: Callable[[Exception], Outcome],
        deliver: Callable[[Sequence[tuple[Request, Outcome]]], object],
        *,
        seconds: Callable[[], float] = time.monotonic,
        most_waiting: int = MAX_WAITING_BYTES,
    ) -> None:
        """Have `process` take each group; `deliver` brings the outcomes to where they belong."""
        self._deliver = deliver
        self._process = process
        self._failed = failed
        self._seconds = seconds
        self._most = most_waiting
        self._queue: deque[Request] = deque()
        self._bytes = 0  # of the bodies that wait or are under way
        self._lock = threading.Lock()
        self._wake = threading.Lock()  # held while nothing has arrived
        self._wake.acquire()
        self._idle = False
        self._wanted = 1  # requests that end the wait
        self._begun: float | None = None
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """How many requests wait for the group under way."""
        return len(self._queue)

    def submit(self, request: Request) -> None:
        """Have a request taken with the next group; Overloaded: too much waits already."""
        begun = self._begun
        if begun is not None and self._seconds() - begun > ANSWER_SECONDS:
            raise self.stalled(f"a group has waited for the store for {ANSWER_SECONDS:g} s")
        size = request.size
        with self._lock:
            if self._bytes and self._bytes + size > self._most:
                why = f"{self.waiting:,} requests wait for the store already"
                raise Overloaded(RETRY_SECONDS, why)
            self._bytes += size
            self._queue.append(request)
            self._start_or_wake()

    def stalled(self, why: str) -> Exception:
        """Return the error of a request for which a group that hangs leaves no time."""
        return Overloaded(RETRY_SECONDS, why)

    def counted(self, requests: int) -> None:
        """Note the size of a group: nothing is noted here."""

    def _start_or_wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="veilcount-intake", daemon=True)
            self._thread.start()
        if self._idle and self.waiting >= self._wanted:
            self._idle = False
            self._wake.release()

    def _run(self) -> None:
        under_way = 0
        while True:
            if under_way > 1:
                self._wait_for(under_way, GATHER_SECONDS)
            self._wait_for(1, IDLE_SECONDS)
            if self._ends():
                return
            group = self._next_group()
            self._take(group)
            under_way = len(group) + self.waiting

    def _ends(self) -> bool:
        """Leave, if there is nothing to do: the next request starts another thread."""
        with self._lock:
            if self.waiting:
                return False
            self._thread = None
            return True

    def _wait_for(self, requests: int, seconds: float) -> None:
        """Wait until so many requests are here, at most for so long."""
        with self._lock:
            self._wanted = requests
            self._idle = self.waiting < requests
            waits = self._idle
        if waits and not self._wake.acquire(timeout=seconds):
            with self._lock:
                if not self._idle:  # it was released meanwhile
                    self._wake.acquire()
                self._idle = False

    def _next_group(self) -> list[Request]:
        with self._lock:
            if self._bytes <= MAX_GROUP_CONTENT:  # nearly always: nobody has to look for padding
                group = list(self._queue)
                self._queue.clear()
                return group
            group, size, content = [], 0, 0
            while self._queue and size < MAX_GROUP_BYTES and content < MAX_GROUP_CONTENT:
                group.append(self._queue.popleft())
                size += group[-1].size
                content += group[-1].content
            return group

    def _take(self, group: list[Request]) -> None:
        self.counted(len(group))
        self._begun = self._seconds()
        waiting = [request for request in group if not request.pending.done()]
        outcomes = self._outcomes(waiting)
        self._begun = None
        with self._lock:
            self._bytes -= sum(request.size for request in group)
        self._settle(list(zip(waiting, outcomes, strict=True)))

    def _settle(self, settled: Sequence[tuple[Request, Outcome]]) -> None:
        """Bring outcomes to where they belong, from the thread that took the group."""
        self._deliver(settled)

    def _outcomes(self, requests: Sequence[Request]) -> Sequence[Outcome]:
        """Return what each request gets: whatever fails, the thread lives on."""
        try:
            return self._process(requests) if requests else ()
        except Exception as error:  # noqa: BLE001 - logged where the requests are answered
            return [self._failed(error)] * len(requests)
