"""The clock of the demo, shared by devices and aggregator."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime


class DemoClock:
    """A clock that is set by the replay, and follows real time once released."""

    def __init__(self, start: datetime, machine: Callable[[], float] = time.time) -> None:
        """Start at this instant."""
        self._seconds = start.timestamp()
        self._machine = machine
        self._released = False

    def now(self) -> float:
        """Return the seconds since 1970, for a client."""
        return self._machine() if self._released else self._seconds

    def instant(self) -> datetime:
        """Return the same instant, for an aggregator."""
        return datetime.fromtimestamp(self.now(), UTC)

    def move(self, to: datetime) -> None:
        """Advance to a later instant."""
        self._seconds = max(self._seconds, to.timestamp())

    def release(self) -> None:
        """Follow the machine's clock from now on."""
        self._released = True
