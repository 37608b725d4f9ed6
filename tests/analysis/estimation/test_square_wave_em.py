"""EM over the square wave: exact tables, a band as labelled, an unbiased mean.

Its interval is covered by test_coverage_corners.py.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from veilcount_analysis.estimation import square_wave_em
from veilcount_analysis.estimation.estimator import IntervalTarget
from veilcount_analysis.estimation.square_wave_em import (
    MOST_STEPS,
    _WindowSums,
    estimate_distribution,
    get_wave,
)
from veilcount_shared.mechanisms import DistributionMechanism

from .simulated_counts import BUCKETS, RANGE, Counts, curve_of, draw, population, rows_of

ONE, FOUR = (
    DistributionMechanism.for_epsilon(Fraction(1)),
    DistributionMechanism.for_epsilon(Fraction(4)),
)
EPSILONS = [Fraction(each) for each in ("0.000001", "0.5", "1", "4", "16")]
EDGES = np.array([48, 96, 128, 192])

every_epsilon = pytest.mark.parametrize("epsilon", EPSILONS, ids=str)


def some_counters(n: int = 20_000, mechanism: DistributionMechanism = FOUR) -> Counts:
    generator = np.random.default_rng(3)
    held = population("two humps", n, generator)
    return draw(held, mechanism, IntervalTarget.COHORT, generator)


# -- the distribution of levels --------------------------------------------------------------------


@every_epsilon
def test_the_devices_exact_distribution_is_decoded_without_bias(epsilon: Fraction) -> None:
    """Expected over a bucket's reports: the bucket's middle, and the square of it."""
    mechanism = DistributionMechanism.for_epsilon(epsilon)
    wave, rows = get_wave(mechanism), rows_of(mechanism)
    middles = (np.arange(BUCKETS) + 0.5) / BUCKETS

    assert np.allclose(wave.rows, rows, rtol=1e-12, atol=0)
    assert np.allclose(rows @ wave.decoded[0], middles, atol=1e-14 * abs(wave.decoded).max())
    assert np.allclose(rows @ wave.squares[0], middles**2, atol=1e-6)


@pytest.mark.parametrize("mechanism", [ONE, FOUR], ids=["eps 1", "eps 4"])
def test_every_step_of_em_makes_the_counters_likelier(mechanism: DistributionMechanism) -> None:
    """So it goes on until a step gains too little.

    A step's few hundred additions are what products with the whole matrix would be.
    """
    wave, counters = get_wave(mechanism), some_counters(5_000, mechanism)
    share, spread, gained = counters / counters.sum(), np.full(BUCKETS, 1 / BUCKETS), []
    windows = _WindowSums(wave)
    for _ in range(100):
        expected = windows.expected(spread)
        gained.append(float(counters @ np.log(expected)))
        moved = windows.expectation(share / expected)

        assert np.allclose(expected, spread @ wave.rows, rtol=1e-9, atol=0)
        assert np.allclose(moved, wave.rows @ (share / expected), rtol=1e-9, atol=0)
        spread = spread * moved

    assert np.all(np.diff(gained) > 0)
    assert np.isclose(spread.sum(), 1)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_em_stops_long_before_its_limit_of_steps(epsilon: str) -> None:
    """After 3,542 of 100,000 reports at epsilon 1; low epsilons included."""
    mechanism = DistributionMechanism.for_epsilon(Fraction(epsilon))
    _, steps = get_wave(mechanism).likeliest(some_counters(100_000, mechanism))

    assert steps < MOST_STEPS / 4


def test_a_range_without_new_reports_is_not_fitted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """At each view of a page; with one more report it is, and another target has its own noise."""
    counters, domain = some_counters(1_000), RANGE
    first = estimate_distribution(FOUR, domain, counters)
    monkeypatch.setattr(square_wave_em.SquareWaveTables, "likeliest", _not_expected)
    again = estimate_distribution(FOUR, domain, counters.copy())

    assert again.frequency is not None
    assert np.array_equal(again.frequency, np.asarray(first.frequency))
    assert np.array_equal(again.curve.low, first.curve.low)
    for other in (counters + (np.arange(len(counters)) == 9), counters[::-1]):
        with pytest.raises(RuntimeError, match="fitted"):
            estimate_distribution(FOUR, domain, other)
    with pytest.raises(RuntimeError, match="fitted"):
        estimate_distribution(FOUR, domain, counters, target=IntervalTarget.POPULATION)


def _not_expected(*_: object) -> object:
    raise RuntimeError("fitted again")


# -- the band --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", list(IntervalTarget))
def test_the_band_is_as_wide_as_the_noise_makes_it(target: IntervalTarget) -> None:
    """60 repetitions at n = 2,000: the spread of the curve is the band's, within 25 %.

    A band of 30 % less or more is outside that. Cohort: the devices stay, the noise is drawn anew.
    """
    generator = np.random.default_rng(11)
    held = population("two humps", 2_000, generator)
    again = [draw(held, FOUR, target, generator) for _ in range(60)]
    found = [
        estimate_distribution(FOUR, RANGE, counters, 0.6827, target=target) for counters in again
    ]
    spread = np.std([curve_of(each)[EDGES] for each in found], axis=0)
    half = np.mean([(each.curve.high - each.curve.low)[EDGES] / 2 for each in found], axis=0)
    off = abs(np.log(half / spread * np.array([[1.0], [0.7], [1.3]]))).max(axis=1)

    assert list(off < np.log(1.25)) == [True, False, False]


def test_an_epsilon_without_information_leaves_everything_possible() -> None:
    """At a millionth the even histogram of EM is not shown as if it were known."""
    mechanism = DistributionMechanism.for_epsilon(Fraction(1, 10**6))
    estimate = estimate_distribution(mechanism, RANGE, some_counters(10_000, mechanism))

    assert set(estimate.curve.low[1:-1]) == {0.0}
    assert set(estimate.curve.high[1:-1]) == {1.0}
    assert (estimate.low, estimate.high) == (0, BUCKETS)
