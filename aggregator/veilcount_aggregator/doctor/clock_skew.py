"""This machine's clock against another one's, and whether retention waits for a word on it.

Periods begin at midnight, UTC, and rows are dropped by the day.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from ..retention.clock_guard import TOLERANCE
from ..retention.retention_guard import needs_confirmation, read_confirmed_day
from .finding import CheckResult, ok, warn, wrong
from .store_snapshot import StoreSnapshot

MUCH = timedelta(seconds=30)
FIX = "let NTP set the clocks of both machines: periods begin and end at midnight, UTC"


def skew(there: datetime, before: datetime, after: datetime) -> Iterator[CheckResult]:
    """Yield how far the other clock is off, which told an instant between two of ours."""
    off = max(before - there, there - after, timedelta(0))
    told = f"{off.total_seconds():.0f} s from this machine's"
    if off > TOLERANCE:
        yield wrong(f"{told}: no host takes reports by such a clock", FIX)
    elif off > MUCH:
        yield warn(told, FIX)
    else:
        yield ok(f"within {max(off.total_seconds(), 1):.0f} s of this machine's")


def retention(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Yield whether the day is confirmed by which rows are dropped."""
    found, today = read_confirmed_day(stored.store), stored.today
    if found is None:
        yield ok("no server has confirmed a day yet: it does within 24 hours")
    elif needs_confirmation(found, today):
        yield warn(
            f"rows are not dropped: {found.day} is the last day that is confirmed, and"
            f" {(today - found.day).days} days seem to have passed",
            "if this machine's clock is right: `veilcount store confirm-clock`, or let a server run"
            " for 24 hours",
        )
    elif found.day > today:
        yield warn(
            f"{found.day} is confirmed, and to come: this clock is wrong, or was then",
            "compare this machine's clock with others; a server with a right one sets the day back",
        )
    else:
        yield ok(f"rows are dropped by the day: {found.day} is confirmed")
