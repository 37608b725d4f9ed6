"""The poisoning band of a trend holds the honest share: fakes are devices, and choose their level.

600 campaigns of 20,000 devices, of which 1 % are fake: all of one level or of two, of the level
that moves the share most or of any, with the sign of each interval that moves it most. The band is
a bound, so none may leave it; that of fakes who draw their level as devices do is left. The seed is
fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.random import Generator

from veilcount_analysis.estimation.confidence_intervals import Counts, Ends, Floats
from veilcount_analysis.estimation.trend import TrendCounts, TrendEstimator
from veilcount_analysis.estimation.trend_weights import interval_levels, share_weights
from veilcount_analysis.mechanisms.trend import TrendHandler
from veilcount_analysis.simulation.changing_states import draw_trend_counters
from veilcount_shared.mechanisms import TrendMechanism

CAMPAIGNS, DEVICES, FAKES = 600, 20_000, 200
ROUNDING = 1e-9

Band = Callable[[TrendEstimator], Ends]


def states(people: int, periods: int, generator: Generator) -> Counts:
    """A state that becomes true: slowly, at a launch, or early."""
    slow = generator.integers(0, periods * 3 // 2, people)
    launch = periods // 2 + generator.geometric(0.3, people) - 1
    early = generator.integers(0, max(2, periods // 10), people)
    never = np.where(generator.random(people) < 0.45, 10 * periods, 0)
    times = [slow, launch + never, early + never][generator.integers(3)]
    changed: Counts = (np.arange(periods) >= times[:, np.newaxis]).astype(np.int64)
    return changed


def share(counts: TrendCounts, period: int) -> TrendEstimator:
    estimator = counts.after(period)
    assert estimator is not None
    return estimator


@cache
def attacks() -> list[tuple[TrendEstimator, TrendEstimator]]:
    """The shares from honest devices, and from the same among fakes."""
    generator, shares = np.random.default_rng(12), []
    for _ in range(CAMPAIGNS):
        periods = int(generator.choice([12, 20, 52]))
        trend = TrendMechanism.for_epsilon(Fraction(1), periods, 1)
        people = states(DEVICES - FAKES, periods, generator)
        counts = TrendHandler(trend).counts(draw_trend_counters(trend, people, generator))
        period = int(generator.integers(1, periods + 1))
        weights = share_weights(periods, period, bytes([1] * len(counts.reports)))
        assert weights is not None
        level = interval_levels(periods)
        attacked = np.isin(level, chosen_levels(weights, level, generator))
        added = attacked * (FAKES // len(set(level[attacked].tolist())))
        rises = added * (generator.choice([-1, 1]) * weights > 0)
        changed = replace(counts, rises=counts.rises + rises, reports=counts.reports + added)
        shares.append((share(counts, period), share(changed, period)))
    return shares


def chosen_levels(weights: Floats, level: Counts, generator: Generator) -> Counts:
    """The level that moves a share most, or one or two of any."""
    if generator.integers(3) == 0:
        return np.array([np.bincount(level, np.abs(weights)).argmax()])
    chosen: Counts = generator.choice(
        level.max() + 1, size=1 + int(generator.integers(2)), replace=False
    )
    return chosen


def outside(band: Band) -> int:
    """The number of honest shares that a band does not hold."""
    misses = 0
    for honest, received in attacks():
        low, high = band(received)
        misses += not low[1] - ROUNDING <= honest.points[1] <= high[1] + ROUNDING
        assert low[0] + high[1] == pytest.approx(1)
    return misses


def test_no_choice_of_levels_moves_the_share_out_of_the_band() -> None:
    assert outside(lambda received: received.poisoned(FAKES / DEVICES)) == 0


def test_a_band_of_fakes_that_draw_their_level_is_left() -> None:
    """Planted: fakes are as frequent in each level as in all."""

    def of_each_level(received: TrendEstimator) -> Ends:
        return received.poisoned(FAKES / DEVICES / received.counts.levels)

    assert outside(of_each_level) > CAMPAIGNS / 10


def test_the_band_of_a_level_that_has_not_ended_counts_its_devices_too() -> None:
    """After one of 80 periods one of seven levels has reported: 1 % of devices are 7 % of it."""
    trend = TrendMechanism.for_epsilon(Fraction(1), 80, 1)
    level = 99_000 // trend.levels
    risen = round(level * (1 + float(trend.gap) * 0.3) / 2)
    counters = np.zeros((1, trend.counters), np.int64)
    counters[0, :2] = level - risen, risen
    honest = share(TrendHandler(trend).counts(counters), 1)
    received = share(
        TrendHandler(trend).counts(counters + np.eye(1, trend.counters, 1, int) * 1_000), 1
    )
    low, high = received.poisoned(0.01)

    assert received.points[1] - honest.points[1] > 0.1
    assert low[1] <= honest.points[1] <= high[1]
    assert received.n == level + 1_000
