"""Another machine's clock beside this one's: periods begin at midnight, UTC."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from .finding import Told, ok, warn, wrong

MUCH = timedelta(seconds=30)
TOO_MUCH = timedelta(minutes=10)
FIX = "let NTP set the clocks of both machines: periods begin and end at midnight, UTC"


def skew(there: datetime, before: datetime, after: datetime) -> Iterator[Told]:
    """Yield how far the other clock is off, which told an instant between two of ours."""
    off = max(before - there, there - after, timedelta(0))
    told = f"{off.total_seconds():.0f} s from this machine's"
    if off > TOO_MUCH:
        yield wrong(told, FIX)
    elif off > MUCH:
        yield warn(told, FIX)
    else:
        yield ok(f"within {max(off.total_seconds(), 1):.0f} s of this machine's")
