"""Ranges of a number: unbiased for every population, with intervals that hold, and as near as EM.

Simulations are seeded. Coverage fails only where a 99.99 % Clopper-Pearson interval misses the
claim; the same test rejects counters of an epsilon 30 % away.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from veilcount_analysis import estimate, tally
from veilcount_analysis.estimation.estimator import IntervalTarget
from veilcount_analysis.estimation.range_queries import RangeEstimator, TreeReports, estimate_ranges
from veilcount_analysis.mechanisms.range_tree import tree_reading
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import RangeTree

from ...statistical.coverage_harness import Coverage
from ...statistical.distributions import with_epsilon
from .collection_fixtures import question
from .simulated_counts import BUCKETS, DECILES, RANGE, Counts, draw, few, population, rows_of

ONE, EIGHT = RangeTree.for_epsilon(Fraction(1)), RangeTree.for_epsilon(Fraction(8))
MORE = [pytest.param(Fraction(e), marks=pytest.mark.full) for e in ("0.1", "0.5", "2", "3", "16")]
EPSILONS = [*map(Fraction, ("0.000001", "1", "8")), *MORE]
COVERED, ALPHA = 0.935, 1e-4

every_epsilon = pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
each_target = pytest.mark.parametrize("target", list(IntervalTarget))


BOUNDS = [(64, 128), (3, 4), (90, 133), (0, 200), (129, 131)]
INSIDE = [np.isin(np.arange(BUCKETS), range(*bounds)) for bounds in BOUNDS]
FIGURES = np.array([*INSIDE, (np.arange(BUCKETS) + 0.5) / BUCKETS])  # shares, and the mean


def some_counters(n: int = 50_000, mechanism: RangeTree = ONE, name: str = "two humps") -> Counts:
    generator = np.random.default_rng(5)
    return draw(population(name, n, generator), mechanism, IntervalTarget.COHORT, generator)


# -- the reading -----------------------------------------------------------------------------------


@every_epsilon
def test_the_reading_is_unbiased_for_every_bucket_and_all_shares_are_one(epsilon: Fraction) -> None:
    """A bucket's messages add 1 to its own share, on average, and 0 to any other.

    Whatever was received, every message weighs 1 in the sum of all shares.
    """
    mechanism = RangeTree.for_epsilon(epsilon)
    weights = tree_reading(mechanism).weights
    expected, rounding = rows_of(mechanism) @ weights.T, 1e-14 * abs(weights).max()

    assert np.allclose(expected, np.eye(BUCKETS), rtol=0, atol=rounding)
    assert np.allclose(weights.sum(axis=0), 1, rtol=0, atol=6 * rounding)


@pytest.mark.parametrize("mechanism", [ONE, EIGHT], ids=["eps 1", "eps 8"])
def test_no_unbiased_reading_varies_less(mechanism: RangeTree) -> None:
    """For an even spread, by Gauss and Markov: weights times chances are in the span of the rows.

    The weights of plain least squares, unbiased too, are not.
    """
    rows = rows_of(mechanism)
    for weights, best in ((tree_reading(mechanism).weights, True), (np.linalg.pinv(rows).T, False)):
        scaled = (weights * rows.mean(axis=0)).T
        spanned = rows.T @ np.linalg.lstsq(rows.T, scaled)[0]

        assert np.allclose(rows @ weights.T, np.eye(BUCKETS), rtol=0, atol=1e-9)
        assert np.allclose(spanned, scaled, rtol=0, atol=1e-9 * abs(scaled).max()) is best


# -- coverage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", ["1", "0.7", "1.3"])
def test_intervals_of_shares_and_the_mean_hold_for_the_claimed_epsilon(factor: str) -> None:
    """Of 120 runs at least 93.5 %, unless devices are 30 % below or above what is assumed.

    test_coverage_corners.py has ranges, targets, sizes and epsilons drawn at random.
    """
    n, cohort, generator = 100_000, IntervalTarget.COHORT, np.random.default_rng(100_000)
    held, sent = few(n), with_epsilon(ONE, Fraction(factor))
    truth, found = FIGURES @ held / n, np.zeros(len(FIGURES), np.int64)
    for _ in range(120):
        counters = draw(held, sent, cohort, generator)
        read = TreeReports(tree_reading(ONE).weights, RANGE, counters, 0.95, cohort).read(FIGURES)
        found += (read.low <= truth + 1e-12) & (truth - 1e-12 <= read.high)

    assert all(Coverage(int(each), 120).could_be(COVERED, ALPHA) for each in found) is (
        factor == "1"
    )


@pytest.mark.one_in(3)
@each_target
@pytest.mark.parametrize(("mechanism", "n"), [(ONE, 2_000), (EIGHT, 20_000)])
def test_the_band_holds_at_every_edge_at_once_and_so_do_all_quantiles(
    mechanism: RangeTree, n: int, target: IntervalTarget
) -> None:
    """Of 60 runs at least 93.5 %: every edge inside the band, every decile inside its bounds."""
    generator, runs, band, quantiles = np.random.default_rng(n), 60, 0, 0
    held = few(n)
    true = np.concatenate([[0.0], np.cumsum(held) / n])
    for _ in range(runs):
        counters = draw(held, mechanism, target, generator)
        found = estimate_ranges(tree_reading(mechanism), RANGE, counters, target=target)
        band += bool(np.all((found.curve.low <= true + 1e-9) & (true <= found.curve.high + 1e-9)))
        deciles = [found.curve.quantile(float(share)) for share in DECILES]
        at = np.searchsorted(true, DECILES)
        # the quantile lies in the bucket before the edge at which the true curve has reached it
        quantiles += all(
            each.low <= edge - 1 and edge <= each.high
            for each, edge in zip(deciles, at, strict=True)
        )

    assert Coverage(band, runs).could_be(COVERED, ALPHA)
    assert Coverage(quantiles, runs).could_be(COVERED, ALPHA)


# -- ranges ----------------------------------------------------------------------------------------


@cache
def example() -> RangeEstimator:
    return estimate_ranges(tree_reading(ONE), RANGE, some_counters())


def test_shares_of_neighbouring_ranges_add_up_to_the_whole_which_is_known() -> None:
    """They are unbiased sums of one reading; the consistent curve is for the eye.

    Whatever lies beyond the range counts at its ends, and the upper end counts as inside.
    """
    found, cuts = example(), [0, 10, 64, 65, 200, 256]
    shares = [found.between(*pair).share or 0 for pair in pairwise(cuts)]

    assert np.isclose(sum(shares), 1)
    assert found.frequency is not None
    assert np.allclose(shares[1], found.frequency[10:64].sum())
    for bounds in [(0, 256), (-100, 1000)]:
        whole = found.between(*bounds)

        assert (whole.share, whole.low, whole.high) == pytest.approx((1, 1, 1))


def test_of_a_bucket_that_a_bound_cuts_nothing_is_presumed() -> None:
    """The point counts the part; the lower bound leaves the bucket out, the upper takes it in."""
    found = example()
    inner, cut, outer = found.between(65, 100), found.between(64.5, 100.25), found.between(64, 101)
    within = found.between(64.2, 64.4)

    assert found.frequency is not None
    first, last = found.frequency[64], found.frequency[100]
    assert cut.share == pytest.approx((inner.share or 0) + first / 2 + last / 4)
    assert (cut.low, cut.high) == pytest.approx((inner.low, outer.high))
    assert (within.low, within.high) == (0, found.between(64, 65).high)


def test_bounds_are_in_the_unit_of_the_range_to_the_last_decimals() -> None:
    """0.1 + 0.2 of a range of 0.3 is its end, as a person means it."""
    tenths = Number(Fraction(0), Fraction(256, 10))
    found, plain = estimate_ranges(tree_reading(ONE), tenths, some_counters()), example()
    one, other = found.between(0.1 + 0.2, 6.4), plain.between(3, 64)

    assert (one.share, one.low, one.high) == pytest.approx((other.share, other.low, other.high))
    assert (found.low, found.high) == pytest.approx((plain.low / 10, plain.high / 10))
    assert one.estimand == "of the answers in these n reports"


@pytest.mark.parametrize("bounds", [(10, 10), (10, 5), (float("nan"), 5)])
def test_a_range_that_is_none_is_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="the lower bound first"):
        example().between(*bounds)


def test_points_may_leave_the_bounds_but_bounds_stay_shares() -> None:
    """A raw share below 0 is unbiased; its interval is within 0 and 1, and never of width zero."""
    found = estimate_ranges(tree_reading(ONE), RANGE, some_counters(3_000, name="one hump"))
    shares = [found.between(bucket, bucket + 1) for bucket in range(BUCKETS)]

    assert any((each.share or 0) < 0 for each in shares)
    assert all(0 <= each.low < each.high <= 1 for each in shares)


@each_target
def test_with_no_answer_and_with_one_every_share_is_possible(target: IntervalTarget) -> None:
    counters = np.zeros(ONE.counters, np.int64)
    found = estimate_ranges(tree_reading(ONE), RANGE, counters, target=target)
    share = found.between(10, 20)

    assert (share.share, share.low, share.high) == (None, 0, 1)
    assert share.estimand == found.estimand
    for message in (0, 10, 100, 450):
        one = counters.copy()
        one[message] = 1
        share = estimate_ranges(tree_reading(ONE), RANGE, one).between(10, 20)

        assert (share.low, share.high) == (0, 1)


def test_reports_of_devices_become_ranges() -> None:
    """The client's own randomizer, the wire, the tally and the estimate, end to end."""
    collection = question('range = [0, 240]\nmeasure = "ranges"', "4")
    randomness, generator = SeededRandomSource(4), np.random.default_rng(4)
    minutes = 240 * generator.beta(2, 5, 4_000)
    messages = [collection.randomize(float(value), randomness) for value in minutes]
    found = estimate(collection, tally(collection, messages))

    assert isinstance(found, RangeEstimator)
    assert found.n == 4_000
    assert "everybody who could have been asked" in found.estimand
    assert found.low <= minutes.mean() <= found.high
    for low, high in [(0, 30), (30, 60), (60, 120), (120, 240)]:
        share = found.between(low, high)

        assert share.low <= np.mean((low <= minutes) & (minutes < high)) <= share.high
    median = found.curve.quantile(0.5)
    assert median.low <= np.median(minutes) <= median.high
