"""A check of another machine's clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from veilcount_serving.findings import CheckResult, ok, warn, wrong

from .clock_guard import TOLERANCE

MUCH_SKEW = timedelta(seconds=30)
NTP = "synchronize the clocks of both machines by NTP: periods begin and end at midnight UTC"


def skew(there: datetime, before: datetime, after: datetime) -> Iterator[CheckResult]:
    """Yield the skew of another clock, which was read between two instants of this machine's."""
    off = max(before - there, there - after, timedelta(0))
    message = f"{off.total_seconds():.0f} s from this machine's"
    if off > TOLERANCE:
        yield wrong(f"{message}: a host with such a clock accepts no reports", NTP)
    elif off > MUCH_SKEW:
        yield warn(message, NTP)
    else:
        yield ok(f"within {max(off.total_seconds(), 1):.0f} s of this machine's")
