"""Histograms of a number, by EM from a square wave and from a tree of ranges: what both promise."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from veilcount_analysis.estimation.cdf import BucketHistogram, isotonic
from veilcount_analysis.estimation.estimator import IntervalTarget
from veilcount_analysis.estimation.range_queries import GUARANTEED, estimate_ranges
from veilcount_analysis.estimation.square_wave_em import NOISE_ONLY, estimate_distribution
from veilcount_analysis.mechanisms.range_tree import tree_reading
from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import DistributionMechanism, RangeTree

from .simulated_counts import (
    BUCKETS,
    DECILES,
    RANGE,
    SPREADS,
    Counts,
    curve_of,
    distances,
    draw,
    population,
)


@dataclass(frozen=True)
class Kind:
    """A mechanism of numbers and the estimate of its counters."""

    at: Callable[[Fraction], RangeTree | DistributionMechanism]
    covers: str

    def estimate(
        self,
        mechanism: RangeTree | DistributionMechanism,
        counters: Counts,
        domain: Number = RANGE,
        **options: Any,
    ) -> BucketHistogram:
        if isinstance(mechanism, RangeTree):
            return estimate_ranges(tree_reading(mechanism), domain, counters, **options)
        return estimate_distribution(mechanism, domain, counters, **options)

    def example(self, level: float = 0.95, domain: Number = RANGE) -> BucketHistogram:
        generator, mechanism = np.random.default_rng(3), self.at(Fraction(8))
        held = population("two humps", 20_000, generator)
        counters = draw(held, mechanism, IntervalTarget.COHORT, generator)
        return self.estimate(mechanism, counters, domain, level=level)


KINDS = {
    "wave": Kind(DistributionMechanism.for_epsilon, NOISE_ONLY),
    "tree": Kind(RangeTree.for_epsilon, GUARANTEED),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def mean_distances(
    kind: Kind, runs: int, decoded_as: DistributionMechanism | None = None
) -> tuple[float, float]:
    """The mean distances over runs of each spread, 100,000 devices at epsilon 1."""
    found, mechanism = [], kind.at(Fraction(1))
    for name in SPREADS:
        for seed in range(runs):
            generator = np.random.default_rng(seed)
            held = population(name, 100_000, generator)
            counters = draw(held, mechanism, IntervalTarget.COHORT, generator)
            curve = curve_of(kind.estimate(decoded_as or mechanism, counters))
            found.append(distances(curve, held))
    moved, deciles = np.mean(found, axis=0)
    return float(moved), float(deciles)


def test_a_hundred_thousand_reports_place_the_curve_within_thirteen_thousandths(kind: Kind) -> None:
    """Epsilon 1, four spreads: mean distance <= 0.013, deciles <= 0.014."""
    moved, deciles = mean_distances(kind, runs=1)

    assert moved <= 0.013
    assert deciles <= 0.014


@pytest.mark.full
def test_em_places_each_spread_within_ten_thousandths() -> None:
    assert max(mean_distances(KINDS["wave"], runs=8)) <= 0.010


@pytest.mark.parametrize("factor", [Fraction(7, 10), Fraction(13, 10)], ids=["lower", "higher"])
def test_the_distribution_of_another_epsilon_would_be_farther_off(factor: Fraction) -> None:
    """30 % less or more: the same window, another threshold, and the distance exceeds the bound."""
    window = DistributionMechanism.for_epsilon(Fraction(1)).window
    other = type(window).for_epsilon(factor, window.levels, window.width)

    assert mean_distances(KINDS["wave"], 1, DistributionMechanism(other))[0] > 0.013


def test_the_curve_is_the_nearest_that_rises() -> None:
    """Against the pools of adjacent violators, one by one."""
    values = np.random.default_rng(2).normal(np.linspace(0, 1, 60), 0.3)
    pools: list[list[float]] = []
    for value in values:
        pools.append([value])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]

    assert np.allclose(isotonic(values), [np.mean(pool) for pool in pools for _ in pool])


def test_the_curve_rises_from_0_to_1_inside_its_band_and_quantiles_are_on_it(kind: Kind) -> None:
    found = kind.example()
    curve, share = found.curve, curve_of(found)
    deciles = [curve.quantile(float(share)) for share in DECILES]
    values = [each.value for each in deciles if each.value is not None]

    assert (curve.covers, found.estimand) == (kind.covers, "of the answers in these n reports")
    for each in (share, curve.low, curve.high):
        assert np.all(np.diff(each) >= 0)
        assert (each[0], each[-1]) == (0, 1)
    assert np.all((curve.low <= share) & (share <= curve.high))
    assert values == sorted(values)
    assert np.allclose(np.interp(values, curve.edges, share), DECILES)
    assert all(each.low <= (each.value or 0) <= each.high for each in deciles)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_a_higher_level_has_a_wider_band_and_interval(kind: Kind, level: float) -> None:
    here, above = (kind.example(each) for each in (level, level + 0.0009))

    assert np.all(above.curve.high >= here.curve.high)
    assert np.all(above.curve.low <= here.curve.low)
    assert above.high - above.low > here.high - here.low
    assert above.level == level + 0.0009


def test_buckets_quantiles_and_the_mean_are_in_the_unit_of_the_range(kind: Kind) -> None:
    """The same counters, of minutes from -60 to 180."""
    minutes, ratio = Number(Fraction(-60), Fraction(180)), 240 / BUCKETS
    plain, scaled = (kind.example(domain=domain) for domain in (RANGE, minutes))
    figures, expected = (
        [each.curve.quantile(0.3).value or 0, each.mean or 0, each.low, each.high]
        for each in (scaled, plain)
    )

    assert np.allclose(scaled.curve.edges, plain.curve.edges * ratio - 60)
    assert np.allclose(figures, np.array(expected) * ratio - 60)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan")])
def test_a_share_that_no_quantile_has_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        KINDS["wave"].example().curve.quantile(share)


def test_without_answers_there_are_no_points_and_every_bound_is_the_ranges(kind: Kind) -> None:
    """Nothing here is not a number, so it can be written as JSON; one answer claims no more."""
    mechanism, population = kind.at(Fraction(8)), IntervalTarget.POPULATION
    counters = np.zeros(mechanism.counters, np.int64)
    found = kind.estimate(mechanism, counters)
    counters[100] = 1
    one = kind.estimate(mechanism, counters, target=population)
    median = found.curve.quantile(0.5)
    shown = (found.n, found.mean, found.frequency, found.curve.share, median.value)

    assert shown == (0, None, None, None, None)
    assert (found.low, found.high) == (median.low, median.high) == (0, BUCKETS)
    assert json.dumps([*found.curve.low, *found.curve.high], allow_nan=False)
    assert (one.n, one.low, one.high) == (1, 0, BUCKETS)
    assert one.estimand == "of everybody who could have been asked"
