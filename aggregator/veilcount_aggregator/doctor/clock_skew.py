"""Checks of clocks: the skew between two machines, and the day that retention goes by.

Periods begin at midnight UTC, and rows are dropped by the day.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from ..retention.clock_guard import TOLERANCE
from ..retention.retention_guard import needs_confirmation, read_confirmed_day
from .finding import CheckResult, ok, warn, wrong
from .store_snapshot import StoreSnapshot

MUCH = timedelta(seconds=30)
FIX = "synchronize the clocks of both machines by NTP: periods begin and end at midnight UTC"


def skew(there: datetime, before: datetime, after: datetime) -> Iterator[CheckResult]:
    """Yield the skew of another clock, which was read between two instants of this machine's."""
    off = max(before - there, there - after, timedelta(0))
    message = f"{off.total_seconds():.0f} s from this machine's"
    if off > TOLERANCE:
        yield wrong(f"{message}: a host with such a clock accepts no reports", FIX)
    elif off > MUCH:
        yield warn(message, FIX)
    else:
        yield ok(f"within {max(off.total_seconds(), 1):.0f} s of this machine's")


def retention(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check that the day by which rows are dropped is confirmed."""
    found, today = read_confirmed_day(stored.store), stored.today
    if found is None:
        yield ok("no server has confirmed a day yet; one does within 24 hours")
    elif needs_confirmation(found, today):
        yield warn(
            f"rows are not dropped: the last confirmed day is {found.day},"
            f" {(today - found.day).days} days before this machine's",
            "if this machine's clock is right: `veilcount store confirm-clock`, or let a server run"
            " for 24 hours",
        )
    elif found.day > today:
        yield warn(
            f"the confirmed day, {found.day}, is in the future: this clock is wrong, or was then",
            "compare this machine's clock with others; a server with a right clock resets the day",
        )
    else:
        yield ok(f"rows are dropped by the confirmed day, {found.day}")
