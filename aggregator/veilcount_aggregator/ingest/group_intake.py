"""One thread that takes requests in groups: whatever arrived while the last group was written.

Whoever submits a request does not wait: its outcome is delivered once its group is durable. So a
group is as large as the store is slow. Under load a group gathers for a millisecond more: what it
costs is shared by about as many requests as are under way. A lone request waits for nobody.

What waits is bounded, and for how long: beyond either, a request has to come back. It is safe to
repeat: if it was counted meanwhile, it is a duplicate. A store that hangs holds up this thread, and
nothing else of the process.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..errors import Overloaded, StoreUnavailable
from ..store import ServiceCounter
from .decode import RequestBody
from .pipeline import Outcome
from .service_counters import ServiceCounters

MAX_WAITING_BYTES = 8 << 20
MAX_GROUP_BYTES = 128 << 10  # some 2,000 reports
GATHER_SECONDS = 0.003
RETRY_SECONDS = 2
#: how long a request waits at most: longer than a commit waits for Redis (2 s)
ANSWER_SECONDS = 4.0
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
GROUP = "group"


class Pending(Protocol):
    """Where the outcome of a request is delivered: a future, of a thread or of an event loop."""

    def set_result(self, outcome: Outcome, /) -> object:
        """Take the outcome."""

    def done(self) -> bool:
        """Whether nobody waits any more."""


@dataclass(frozen=True, slots=True, eq=False)
class IntakeRequest:
    """A request that waits: its body, the id of its device key, and its network's class."""

    body: RequestBody
    key: str
    network: str
    pending: Pending

    def settle(self, outcome: Outcome) -> None:
        """Deliver the outcome, unless nobody waits any more."""
        if not self.pending.done():
            self.pending.set_result(outcome)


Process = Callable[[Sequence[IntakeRequest]], Sequence[Outcome]]
Settled = Sequence[tuple[IntakeRequest, Outcome]]
Deliver = Callable[[Settled], object]


def settle_all(settled: Settled) -> None:
    """Deliver each outcome."""
    for request, outcome in settled:
        request.settle(outcome)


class GroupIntake:
    """The requests that wait, and the thread that takes them."""

    def __init__(
        self,
        process: Process,
        service_counters: ServiceCounters,
        *,
        deliver: Deliver = settle_all,
        seconds: Callable[[], float] = time.monotonic,
        most_waiting: int = MAX_WAITING_BYTES,
    ) -> None:
        """Have `process` take each group; `deliver` brings the outcomes to where they belong."""
        self._deliver = deliver
        self._process = process
        self._service_counters = service_counters
        self._seconds = seconds
        self._most = most_waiting
        self._queue: deque[IntakeRequest] = deque()
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

    def submit(self, request: IntakeRequest) -> None:
        """Have a request taken with the next group; Overloaded: too much waits already."""
        begun = self._begun
        if begun is not None and self._seconds() - begun > ANSWER_SECONDS:
            raise StoreUnavailable(f"a group has waited for the store for {ANSWER_SECONDS:g} s")
        size = len(request.body.raw)
        with self._lock:
            if self._bytes and self._bytes + size > self._most:
                why = f"{len(self._queue):,} requests wait for the store already"
                raise Overloaded(RETRY_SECONDS, why)
            self._bytes += size
            self._queue.append(request)
            self._start_or_wake()

    def _start_or_wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="veilcount-intake", daemon=True)
            self._thread.start()
        if self._idle and len(self._queue) >= self._wanted:
            self._idle = False
            self._wake.release()

    def _run(self) -> None:
        taken = 0
        while True:
            if taken > 1:
                self._wait_for(taken, GATHER_SECONDS)
            self._wait_for(1)
            group = self._next_group()
            taken = len(group)
            self._take(group)

    def _wait_for(self, requests: int, seconds: float = -1) -> None:
        """Wait until so many requests are here, at most for so long."""
        with self._lock:
            self._wanted = requests
            self._idle = len(self._queue) < requests
            waits = self._idle
        if waits and not self._wake.acquire(timeout=seconds):
            with self._lock:
                if not self._idle:  # it was released meanwhile
                    self._wake.acquire()
                self._idle = False

    def _next_group(self) -> list[IntakeRequest]:
        with self._lock:
            group, size = [self._queue.popleft()], 0
            while self._queue and size < MAX_GROUP_BYTES:
                group.append(self._queue.popleft())
                size += len(group[-1].body.raw)
            return group

    def _take(self, group: list[IntakeRequest]) -> None:
        self._service_counters.count(ServiceCounter(GROUP, "", -1, str(_size_class(len(group)))))
        self._begun = self._seconds()
        outcomes = self._process(group)
        self._begun = None
        with self._lock:
            self._bytes -= sum(len(request.body.raw) for request in group)
        self._deliver(list(zip(group, outcomes, strict=True)))


def _size_class(requests: int) -> int:
    return next((size for size in SIZES if requests <= size), SIZES[-1])
