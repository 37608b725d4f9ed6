"""The one clock of the story: devices and aggregator look at the same one."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime


class DemoClock:
    """Stands at an instant until it is moved on; once released, goes as the machine's does."""

    def __init__(self, start: datetime, machine: Callable[[], float] = time.time) -> None:
        """Stand at the beginning."""
        self._seconds = start.timestamp()
        self._machine = machine
        self._released = False

    def now(self) -> float:
        """Return the seconds since 1970: what a client asks for."""
        return self._machine() if self._released else self._seconds

    def instant(self) -> datetime:
        """Return the same instant as an aggregator asks for it."""
        return datetime.fromtimestamp(self.now(), UTC)

    def move(self, to: datetime) -> None:
        """Stand at a later instant."""
        self._seconds = max(self._seconds, to.timestamp())

    def release(self) -> None:
        """Go on with the machine's clock: the story has caught up with today."""
        self._released = True
