"""A guard of one host's clock: may reports be judged by it?

Three clocks are compared, every few seconds and never in a request: the host's wall clock, the
process's monotonic clock, and the clock of the store's servers, where it has any. A wall clock that
differs from the store's is *skewed*, by whichever of the two is wrong. One that moved against the
monotonic clock has *jumped*, also where the store's moved with it: both may run on one machine.

A report that is judged by a wrong day is lost for good: devices drop what is `stale`. One that is
refused with 503 waits. So the intake is closed while the clock is in doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from statistics import median_high, median_low

from ...errors import ClockUntrusted, StoreError
from ..interface import IntakeStore

Clock = Callable[[], datetime]
Instant = tuple[datetime, float]  # by the wall clock and by the monotonic one

#: Days decide here, and NTP keeps milliseconds: five minutes are far from both. It is more than a
#: paused machine or a slow reply explains, and costs at most five minutes of one day in `late`.
TOLERANCE = timedelta(minutes=5)
#: how long after a jump the new time is in doubt, and how long before retention trusts a clock
SETTLING_SECONDS = 15 * 60.0
ZERO = timedelta(0)


class ClockState(StrEnum):
    """The state of a host's clock."""

    AGREES = "agrees"
    SKEWED = "skewed"
    JUMPED = "jumped"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The last comparison of the clocks, and since when this one has been sound."""

    state: ClockState
    off: timedelta  # how far the host's clock is ahead of what it should show
    spread: timedelta  # between the clocks of the store's servers
    since: float  # by the monotonic clock

    @property
    def doubted(self) -> bool:
        """Whether nothing may be judged by this clock."""
        return self.state in {ClockState.SKEWED, ClockState.JUMPED}

    def __str__(self) -> str:
        seconds = abs(self.off.total_seconds())
        side = "ahead of" if self.off > ZERO else "behind"
        if self.state is ClockState.SKEWED:
            return f"this host's clock is {seconds:,.0f} s {side} the store's"
        if self.state is ClockState.JUMPED:
            way = "forward" if self.off > ZERO else "back"
            return f"this host's clock jumped {seconds:,.0f} s {way}"
        return f"clock: {self.state}"


class ClockGuard:
    """The guard of one process. Only one thread looks; any thread may read what it saw."""

    def __init__(self, store: IntakeStore, clock: Clock, seconds: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._seconds = seconds
        self._last: Instant | None = None
        self._trusted: Instant | None = None  # the latest at which nothing was in doubt
        self.reading = ClockReading(ClockState.UNKNOWN, ZERO, ZERO, seconds())

    def refuse_if_doubted(self) -> None:
        """Raise `ClockUntrusted` while the clock is skewed or has jumped."""
        if self.reading.doubted:
            raise ClockUntrusted(f"{self.reading}: let NTP set it; reports wait meanwhile")

    @property
    def sound_seconds(self) -> float:
        """Return for how long the clock has agreed; 0: it does not, or the store's differ."""
        reading = self.reading
        if reading.state is not ClockState.AGREES or reading.spread > TOLERANCE:
            return 0.0
        return self._seconds() - reading.since

    def look(self) -> ClockReading:
        """Compare the clocks now."""
        before = self._clock()
        times = self._store_times()
        now, at = self._clock(), self._seconds()
        off = None if times is None else clock_skew(times, before, now)
        step = _moved(self._last, now, at)
        reading = self._judge(off, step, _moved(self._trusted, now, at), at)
        self.reading = replace(reading, spread=max(times) - min(times) if times else ZERO)
        self._last = (now, at)
        if not self.reading.doubted:
            self._trusted = (now, at)
        return self.reading

    def _store_times(self) -> list[datetime] | None:
        """Return what the store's servers show; None: they do not answer."""
        try:
            return self._store.server_times()
        except StoreError:
            return None

    def _judge(
        self, off: timedelta | None, step: timedelta, total: timedelta, at: float
    ) -> ClockReading:
        """Return what is known: `step` since the last look, `total` since the clock was trusted."""
        was = self.reading
        if off is None and was.state is ClockState.SKEWED:
            return was  # it was wrong, and nothing shows that it is right again
        if off is not None and abs(off) > TOLERANCE:
            return ClockReading(ClockState.SKEWED, off, ZERO, at)
        mended = off is not None and was.state is ClockState.SKEWED
        if not mended and abs(total) > TOLERANCE:
            if abs(step) > TOLERANCE:
                return ClockReading(ClockState.JUMPED, total, ZERO, at)
            if was.state is ClockState.JUMPED and at - was.since < SETTLING_SECONDS:
                return was
        since = at if was.doubted or abs(step) > TOLERANCE else was.since
        if off is None:
            return ClockReading(ClockState.UNKNOWN, ZERO, ZERO, since)
        return ClockReading(ClockState.AGREES, off, ZERO, since)


def _moved(then: Instant | None, now: datetime, at: float) -> timedelta:
    if then is None:
        return ZERO
    return now - then[0] - timedelta(seconds=at - then[1])


def clock_skew(times: Sequence[datetime], before: datetime, after: datetime) -> timedelta:
    """Return how far this host, which looked at its clock twice, is ahead of the store's servers.

    Of an even number of servers with two medians the nearer one counts: one server alone whose
    clock is wrong does not make this host's look wrong.
    """
    offs = [max(before - there, ZERO) - max(there - after, ZERO) for there in times]
    if not offs:
        return ZERO
    return min(median_low(offs), median_high(offs), key=abs)
