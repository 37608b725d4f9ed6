"""Shares over time from a trend's reports, each with its standard error.

The share after t periods is the sum of the net changes in the intervals that cover them, at most
one of each level. Different levels are different people, so the errors of a sum's terms are
independent, and each term is a mean of independent signs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

from veilcount_shared.mechanisms.trend import TrendMechanism


@dataclass(frozen=True, slots=True)
class IntervalCount:
    """The reports of one interval of one level."""

    positive: int
    reports: int


@dataclass(frozen=True, slots=True)
class TrendShare:
    """The share whose value is true after a period, as estimated."""

    share: float
    error: float  # standard error, of the population's share; infinite without reports


#: for each level, the counts of its intervals in order
TrendCounts = Sequence[Sequence[IntervalCount]]


def estimate_trend(trend: TrendMechanism, counts: TrendCounts, period: int) -> TrendShare:
    """Return the estimate after this many periods; all intervals that cover them have ended."""
    changes = [_net_change(trend, counts[level][i]) for level, i in trend.cover(period)]
    return TrendShare(
        sum(change.share for change in changes), sqrt(sum(change.error**2 for change in changes))
    )


def _net_change(trend: TrendMechanism, count: IntervalCount) -> TrendShare:
    """Return by how much the share rose in an interval. Here exact arithmetic ends."""
    if not count.reports:
        return TrendShare(0.0, inf)
    gap = float(trend.gap)
    mean = 2 * count.positive / count.reports - 1
    return TrendShare(mean / gap, sqrt((1 - mean * mean) / count.reports) / gap)
