"""A trend's estimates cover, and vary as the formula says, by simulated campaigns.

For each shape 600 campaigns of 2,000 people over 12 periods. The mean variance over the times has
a relative standard error below 3 %, so a true formula leaves 10 % with a probability below .001;
the coverage of intervals of 95 % has one below .005, so .93 is missed with a probability below
.001. The seed is fixed. Estimates that divide by a wrong gap must fail the same checks.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcount_aggregator.estimation.confidence_intervals import quantile
from veilcount_aggregator.estimation.trend import IntervalCount, TrendCounts, estimate_trend
from veilcount_shared.mechanisms.trend import TrendMechanism

PEOPLE, PERIODS, CAMPAIGNS = 2_000, 12, 600
Ints = NDArray[np.int64]


def changing_values(generator: np.random.Generator, changes: int) -> Ints:
    """Values 0 and 1 of each person and period, with up to `changes` changes at random times."""
    times = generator.integers(0, 2 * PERIODS, (PEOPLE, changes))  # half of them never happen
    flips = np.zeros((PEOPLE, 2 * PERIODS), np.int64)
    for one in times.T:
        flips[np.arange(PEOPLE), one] ^= 1
    values: Ints = flips[:, :PERIODS].cumsum(axis=1) % 2
    return values


def collect(trend: TrendMechanism, values: Ints, generator: np.random.Generator) -> TrendCounts:
    """The counts of one campaign, drawn apart from the device's code."""
    drawn = generator.integers(0, trend.levels, len(values))
    return [
        [
            IntervalCount(int(up), int(n))
            for up, n in level_counts(trend, values[drawn == h], h, generator)
        ]
        for h in range(trend.levels)
    ]


def level_counts(
    trend: TrendMechanism, values: Ints, level: int, generator: np.random.Generator
) -> list[tuple[int, int]]:
    width, people, k = 1 << level, len(values), trend.changes
    ends = values[:, width - 1 :: width]
    change = np.diff(ends, axis=1, prepend=0)
    signs = generator.choice((-1, 1), (people, k))
    majority = np.where(generator.random(people) < float(trend.P), 1, -1)
    signs *= (majority * np.sign(signs.sum(axis=1)))[:, None]
    used = np.clip((change != 0).cumsum(axis=1) - 1, 0, k - 1)
    sent = np.where(
        change != 0,
        change * np.take_along_axis(signs, used, axis=1),
        generator.choice((-1, 1), change.shape),
    )
    return [(up, people) for up in (sent > 0).sum(axis=0)]


def quality(drawn: TrendMechanism, read: TrendMechanism) -> tuple[float, float]:
    """The coverage of intervals of 95 %, and the mean variance relative to the formula's."""
    generator = np.random.default_rng(20261123)
    reach, periods = quantile(0.05), range(1, PERIODS + 1)
    errors, bounds = [], []
    truth = np.zeros(PERIODS)
    for _ in range(CAMPAIGNS):
        values = changing_values(generator, drawn.changes)
        truth += values.mean(axis=0) / CAMPAIGNS
        counts = collect(drawn, values, generator)
        found = [estimate_trend(read, counts, period) for period in periods]
        errors.append([one.share for one in found])
        bounds.append([reach * one.error for one in found])
    off = np.abs(np.array(errors) - truth)
    stated = sum(float(drawn.variance(period)) for period in periods) / PERIODS
    return float((off <= np.array(bounds)).mean()), float((off**2).mean() * PEOPLE / stated)


@pytest.mark.parametrize("changes", [1, 3, 5])
def test_a_trend_covers_with_the_stated_variance(changes: int) -> None:
    trend = TrendMechanism.for_epsilon(Fraction(2), PERIODS, changes)

    covered, ratio = quality(trend, trend)

    assert covered >= 0.93
    assert 0.9 <= ratio <= 1.1


def test_a_wrong_gap_is_seen() -> None:
    trend = TrendMechanism.for_epsilon(Fraction(2), PERIODS, 3)

    covered, ratio = quality(trend, TrendMechanism.for_epsilon(Fraction(2), PERIODS, 1))

    assert covered < 0.93
    assert not 0.9 <= ratio <= 1.1


def test_an_interval_without_reports_has_no_finite_error() -> None:
    trend = TrendMechanism.for_epsilon(Fraction(1), 1, 1)

    assert estimate_trend(trend, [[IntervalCount(0, 0)]], 1).error == float("inf")
