"""BatchRules: what a definition says of the batches that a shuffler hands over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from .periods import Unit

#: days after a period in which a device may send; longer periods are answered by rarer visitors
_GRACE = {Unit.DAY: 3, Unit.WEEK: 7}
_LONG_GRACE = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRules:
    """The batch of a period: how small it may be, when it leaves, what hides a report in it."""

    least: int  # reports without covers; a batch of fewer is never handed over
    grace: int  # days
    covers: int = 0
    epsilon: Fraction | None = None  # against the server, by the covers alone
    delta: Fraction | None = None
    honest: int | None = None  # of `least` reports: for the page of accuracy, never a promise
    allow_large_epsilon: bool = False

    @property
    def time_to_send(self) -> timedelta:
        """How long after the end of a period a device may send its report."""
        return timedelta(days=self.grace)


def default_grace(unit: Unit) -> int:
    """Return the days that a batch waits for the devices of a period."""
    return _GRACE.get(unit, _LONG_GRACE)
