"""A clock that tests set and advance."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta

from veilcount_shared import Collection


class SettableClock:
    """Shows the instant it was set to, and never moves on its own."""

    def __init__(self, start: datetime | None = None) -> None:
        """Stand at an instant, or at one that does not matter yet."""
        self.is_set = start is not None
        self._now = (start or datetime(2000, 1, 1, tzinfo=UTC)).timestamp()

    def now(self) -> float:
        """Return the instant it shows, in seconds since 1970."""
        return self._now

    def set(self, instant: datetime) -> None:
        """Show another instant; an earlier one too, as a device's clock may."""
        if instant.tzinfo is None:
            raise ValueError("an instant needs its time zone: datetime(..., tzinfo=UTC)")
        self.is_set = True
        self._now = instant.timestamp()

    def advance(self, **by: float) -> None:
        """Move on: advance(days=7), advance(hours=1, minutes=30)."""
        self._now += timedelta(**by).total_seconds()


def first_common_noon(collections: Iterable[Collection]) -> datetime:
    """Return noon of the first day on which as many of the campaigns as can be are running."""
    campaigns = [(each.start, each.until) for each in collections]
    running = {day: sum(a <= day < b for a, b in campaigns) for day, _ in campaigns}
    day = min(running, key=lambda day: (-running[day], day))
    return datetime.combine(day, time(12), UTC)
