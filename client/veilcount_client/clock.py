"""Clocks: the time is a parameter of the client."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Seconds since 1970, UTC."""

    def now(self) -> float:
        """Return the present instant."""


class SystemClock:
    """The machine's clock."""

    now = staticmethod(time.time)


class BoundedClock:
    """A clock that stays inside the calendar: readings beyond it become 1970."""

    __slots__ = ("_clock",)

    FIRST, LAST = 0.0, 253_370_764_800.0  # the years 1970 and 9999

    def __init__(self, clock: Clock) -> None:
        """Wrap a clock."""
        self._clock = clock

    def now(self) -> float:
        """Return the clock's instant, or 1970 where it has none."""
        seconds = self._clock.now()
        return seconds if self.FIRST <= seconds <= self.LAST else self.FIRST


def instant(seconds: float) -> datetime:
    """Return a clock's seconds as a datetime in UTC."""
    return datetime.fromtimestamp(seconds, UTC)
