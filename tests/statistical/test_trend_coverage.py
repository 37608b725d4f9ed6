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

from veilcount_analysis.estimation.estimator import IntervalTarget
from veilcount_analysis.estimation.trend import TrendEstimator
from veilcount_analysis.mechanisms.trend import TrendHandler
from veilcount_shared.mechanisms import TrendMechanism

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


def collect(trend: TrendMechanism, values: Ints, generator: np.random.Generator) -> dict[int, Ints]:
    """The counters of each period of one campaign, drawn apart from the device's code."""
    drawn = generator.integers(0, trend.levels, len(values))
    found = {period: np.zeros(trend.counters, np.int64) for period in range(PERIODS)}
    for level in range(trend.levels):
        counts = level_counts(trend, values[drawn == level], level, generator)
        for interval, (rises, reports) in enumerate(counts):
            last = ((interval + 1) << level) - 1
            found[last][2 * level :][:2] = reports - rises, rises
    return found


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
    handler, covered, off = TrendHandler(read), [], []
    for _ in range(CAMPAIGNS):
        values = changing_values(generator, drawn.changes)
        counters = collect(drawn, values, generator)
        truth = values.mean(axis=0)
        for period in range(PERIODS):
            found = handler.evidence(period, counters.__getitem__)
            assert found is not None
            low, high = found.interval(0.05, IntervalTarget.POPULATION)
            covered.append(low[1] <= truth[period] <= high[1])
            off.append(float(found.points[1]) - truth[period])
    stated = sum(float(drawn.variance(period)) for period in range(1, PERIODS + 1)) / PERIODS
    return float(np.mean(covered)), float(np.mean(np.square(off)) * PEOPLE / stated)


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


def test_small_counts_have_wider_intervals_that_cover_as_well() -> None:
    """Forty people, whose counts are too small for the normal."""
    trend, generator = TrendMechanism.for_epsilon(Fraction(2), PERIODS, 1), np.random.default_rng(1)
    handler, covered = TrendHandler(trend), []
    for _ in range(CAMPAIGNS):
        values = changing_values(generator, 1)[:40]
        counters = collect(trend, values, generator)
        found = handler.evidence(PERIODS - 1, counters.__getitem__)
        if found is not None:
            low, high = found.interval(0.05, IntervalTarget.POPULATION)
            covered.append(low[1] <= values[:, -1].mean() <= high[1])

    assert len(covered) > CAMPAIGNS / 2
    assert np.mean(covered) >= 0.95


def test_fakes_move_the_shares_by_no_more_than_the_band() -> None:
    """All fakes choose the interval with the least reports, and the sign that moves most."""
    trend, generator = TrendMechanism.for_epsilon(Fraction(2), PERIODS, 1), np.random.default_rng(2)
    counters = collect(trend, changing_values(generator, 1), generator)
    honest = TrendHandler(trend).evidence(PERIODS - 2, counters.__getitem__)
    assert honest is not None
    added = np.zeros_like(honest.reports)
    added[np.argmin(honest.reports)] = honest.n // 99
    for rises, end in ((added, 0), (0 * added, 1)):
        moved = TrendEstimator(honest.gap, honest.rises + rises, honest.reports + added)
        band = moved.poisoned(added.sum() / moved.n)

        assert abs(moved.points[1] - honest.points[1]) > 0.02
        assert band[0][1] - 1e-9 <= honest.points[1] <= band[1][1] + 1e-9
        assert abs(band[end][1] - honest.points[1]) < 0.02
        assert abs(band[1 - end][0] + band[end][1] - 1) < 1e-9


def test_a_period_with_an_interval_without_reports_has_no_estimate() -> None:
    trend = TrendMechanism.for_epsilon(Fraction(1), 3, 1)
    counters = {0: np.array([1, 1, 0, 0]), 1: np.array([0, 0, 0, 0]), 2: np.array([1, 1, 0, 0])}

    assert TrendHandler(trend).evidence(0, counters.__getitem__) is not None
    assert TrendHandler(trend).evidence(1, counters.__getitem__) is None
    assert TrendHandler(trend).evidence(2, counters.__getitem__) is None
