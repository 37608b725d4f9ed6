"""The circuit breaker of one server: calls to a server that does not answer fail at once.

Closed, every call goes through. A call that was not answered in time, or a connection that was not
accepted, opens it: from then on calls fail without being sent. After a pause, which doubles while
the server stays away, one caller at a time may probe it; an answer closes the breaker.

Before the first call has run out of time, calls pile up behind a server that hangs. So at most
`MOST_STALLED` calls may wait for a server whose oldest call has waited for `STALL_SECONDS`.

No thread, no event loop and no socket in here: whoever makes the calls reports what became of them.
The lock is held for a few instructions and never while anything waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

from ...errors import StoreUnavailable
from .error_mapping import START_REDIS

PAUSE_SECONDS = 0.5
LONGEST_PAUSE = 5.0
STALL_SECONDS = 1.0
MOST_STALLED = 8


class BreakerState(StrEnum):
    """Whether calls go through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"  # one caller probes


class CircuitBreaker:
    """Circuit breaker of one server, for any number of threads or tasks."""

    def __init__(self, server: str, seconds: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._seconds = seconds
        self._lock = threading.Lock()
        self._state = BreakerState.CLOSED
        self._pause = PAUSE_SECONDS
        self._probes_at = 0.0
        self._why = ""
        self._calls: dict[object, float] = {}  # under way, by when each began; oldest first

    @property
    def state(self) -> BreakerState:
        """Whether calls go through."""
        return self._state

    @contextmanager
    def call(self) -> Iterator[None]:
        """Make one call, unless the breaker is open or too many calls wait already.

        Whoever makes it reports `succeeded` or `failed`; an error that is not about the server
        is reported as neither.
        """
        with self._lock:
            if self._state is not BreakerState.CLOSED:
                raise StoreUnavailable(self._refusal())
            self._refuse_if_stalled()
            token = object()
            self._calls[token] = self._seconds()
        try:
            yield
        finally:
            with self._lock:
                del self._calls[token]

    def probe_is_due(self) -> bool:
        """Whether a caller should probe the server now."""
        return self._state is BreakerState.OPEN and self._seconds() >= self._probes_at

    def begin_probe(self) -> bool:
        """Return whether this caller is to probe the server now, and so no other."""
        with self._lock:
            if not self.probe_is_due():
                return False
            self._state = BreakerState.HALF_OPEN
            return True

    def succeeded(self) -> None:
        """Close: the server answers."""
        if self._state is BreakerState.CLOSED:  # nearly always, and then no lock
            return
        with self._lock:
            self._state, self._pause, self._why = BreakerState.CLOSED, PAUSE_SECONDS, ""

    def failed(self, why: str) -> None:
        """Open: the server did not answer, or no connection was accepted.

        Calls that were sent before the breaker opened fail one after the other: they do not make
        the pause longer, a failed probe does.
        """
        with self._lock:
            if self._state is BreakerState.HALF_OPEN:
                self._pause = min(self._pause * 2, LONGEST_PAUSE)
            elif self._state is BreakerState.CLOSED:
                self._pause = PAUSE_SECONDS
            else:
                return
            self._state, self._why = BreakerState.OPEN, why
            self._probes_at = self._seconds() + self._pause

    def _refuse_if_stalled(self) -> None:
        oldest = next(iter(self._calls.values()), None)
        if oldest is None or len(self._calls) < MOST_STALLED:
            return
        waited = self._seconds() - oldest
        if waited > STALL_SECONDS:
            raise StoreUnavailable(
                f"Redis at {self._server} does not answer: {len(self._calls)} calls wait, "
                f"the oldest for {waited:.1f} s: {START_REDIS}"
            )

    def _refusal(self) -> str:
        return f"Redis at {self._server} does not answer: {self._why or 'no probe is due yet'}"
