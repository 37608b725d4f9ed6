"""Confidence sequences hold at every look, however often one looks.

Each run is a collection that grows, looked at over and over. A run fails if any of its looks leaves
the truth out. The share of failing runs must be at most MISS, the error that the intervals state;
a setting fails the check if it is above that with a confidence of 99.99 % (ALPHA, Clopper-Pearson).
Seeded. The planted variant is the interval for one planned look: the same check rejects it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcount_analysis.estimation import IntervalTarget, IntervalTerms, LookCount, compare
from veilcount_analysis.estimation.clopper_pearson import lower
from veilcount_analysis.estimation.mean import worst_noise
from veilcount_analysis.estimation.proportions import SupportCounts
from veilcount_analysis.estimation.response_distribution import ResponseDistribution
from veilcount_analysis.estimation.results import estimate_frequencies
from veilcount_analysis.mechanisms import estimate
from veilcount_analysis.simulation import simulate
from veilcount_shared.mechanisms import MeanMechanism, select_mechanism

from ..analysis.estimation.collection_fixtures import (
    mean,
    of_number,
    of_values,
    question,
    shares,
    sums,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ALPHA = 1e-4
MISS = 0.05
RUNS = 400
RUNS_OF_MEANS = 30
FEWER = 80  # of those that are compared, in which a planted variant is rejected too


def holds(failing: Ints | NDArray[np.bool_], miss: float = MISS) -> bool:
    """Whether no more runs fail than may."""
    return bool(lower(int(failing.sum()), len(failing), ALPHA) <= miss)


# -- shares: all runs at once ----------------------------------------------------------------------


@dataclass(frozen=True)
class Growing:
    """A share of growing data; in a cohort it moves as answers arrive."""

    response: ResponseDistribution
    target: IntervalTarget
    shares: tuple[float, ...]  # of each day; the first has ten answers, each a tenth more
    truly: ResponseDistribution

    def failing(self, looks: LookCount, runs: int) -> NDArray[np.bool_]:
        """Which runs have a look that leaves the truth out."""
        rng, terms = np.random.default_rng(31), IntervalTerms(1 - MISS, self.target, looks=looks)
        counts, failing = np.zeros(runs, np.int64), np.zeros(runs, np.bool_)
        n, holders = 0, 0
        for day, share in enumerate(self.shares):
            more = int(10 * 1.1**day)
            held = round(more * share)
            n, holders = n + more, holders + held
            counts = counts + self.answers(more, held, share, rng, runs)
            low, high = terms.interval(SupportCounts(n, counts, self.response, 1))
            true = share if self.target.sampled else holders / n
            failing |= (low > true) | (true > high)
        return failing

    def answers(
        self, more: int, held: int, share: float, rng: np.random.Generator, runs: int
    ) -> Ints:
        """One day's supports: of persons drawn from the population, or of these."""
        if self.target.sampled:
            return rng.binomial(more, self.truly.Q + share * self.truly.gap, runs)
        supports: Ints = rng.binomial(held, self.truly.P, runs)
        return supports + rng.binomial(more - held, self.truly.Q, runs)


def response_of(k: int, epsilon: str) -> ResponseDistribution:
    return ResponseDistribution.from_mechanism(select_mechanism(k, epsilon).mechanism)


def growing(
    k: int, epsilon: str, share: float, target: IntervalTarget, *, days: int = 40, truly: str = ""
) -> Growing:
    """The data of so many days; a cohort's share climbs by a half."""
    climb = 0 if target.sampled else 1 / days / 2
    held = tuple(share * (1 + day * climb) for day in range(days))
    return Growing(response_of(k, epsilon), target, held, response_of(k, truly or epsilon))


@pytest.mark.parametrize("days", [40, pytest.param(120, marks=pytest.mark.full)])
@pytest.mark.parametrize("target", IntervalTarget)
@pytest.mark.parametrize(
    "share", [0.01, 0.4, *(pytest.param(each, marks=pytest.mark.full) for each in (0.0, 0.66))]
)
@pytest.mark.parametrize(
    ("k", "epsilon"),
    [(2, "1"), (10, "8"), (300, "2"), pytest.param(65_536, "0.5", marks=pytest.mark.full)],
)
def test_the_share_is_never_left_out(
    k: int, epsilon: str, share: float, target: IntervalTarget, days: int
) -> None:
    assert holds(growing(k, epsilon, share, target, days=days).failing(LookCount.EVERY, RUNS))


@pytest.mark.parametrize("target", IntervalTarget)
def test_the_interval_for_one_look_leaves_it_out_in_many_runs(target: IntervalTarget) -> None:
    """The planted variant: of 100 runs about 30 miss at some look, not 5."""
    failing = growing(2, "1", 0.4, target).failing(LookCount.ONE, RUNS)

    assert not holds(failing)
    assert failing.mean() > 0.2


def test_devices_with_another_epsilon_are_seen_to_be() -> None:
    """It is no interval that always holds: with 30 % less epsilon the truth is left out."""
    planted = growing(2, "1", 0.6, IntervalTarget.COHORT, days=60, truly="0.7")

    assert not holds(planted.failing(LookCount.EVERY, 100))


# -- comparisons -----------------------------------------------------------------------------------


def finding(looks: LookCount, runs: int, correlation: Floats | None = None) -> NDArray[np.bool_]:
    """Which runs find a difference between two like sides at some look; each row is a run."""
    response, rng = response_of(2, "1"), np.random.default_rng(32)
    terms = IntervalTerms(1 - MISS, IntervalTarget.POPULATION, looks=looks)
    counts, n, found = np.zeros((2, runs), np.int64), 0, np.zeros(runs, np.bool_)
    for peek in range(6):
        more = 200 * 2**peek
        n += more
        counts = counts + rng.binomial(more, response.Q + 0.3 * response.gap, (2, runs))
        sides = (
            estimate_frequencies(SupportCounts(n, count, response, 1), terms, np.arange(runs))
            for count in counts
        )
        result = compare(*sides, correlation=correlation)
        found |= result.differs
        assert (result.differs == ((result.low > 0) | (result.high < 0))).all()
    return found


def test_a_comparison_that_is_looked_at_every_day_finds_no_difference_that_is_none() -> None:
    assert holds(finding(LookCount.EVERY, FEWER))
    assert holds(finding(LookCount.EVERY, FEWER, correlation=np.zeros(FEWER)))


def test_one_for_a_single_look_finds_one_in_many_runs() -> None:
    assert not holds(finding(LookCount.ONE, FEWER))


def test_a_true_difference_is_found_at_every_later_look() -> None:
    response = response_of(2, "2")
    terms = IntervalTerms(0.95, IntervalTarget.COHORT, looks=LookCount.EVERY)
    for n in (20_000, 200_000):
        supports = [round(n * (response.Q + share * response.gap)) for share in (0.4, 0.5)]
        sides = (
            estimate_frequencies(
                SupportCounts(n, np.array([support]), response, 1), terms, np.arange(1)
            )
            for support in supports
        )
        result = compare(*sides)

        assert result.differs.all()
        assert "valid at every look" in result.sentence(0, "dark", "A", "B")


# -- means -----------------------------------------------------------------------------------------


def failing_means(
    looks: LookCount, target: IntervalTarget, epsilon: str, runs: int
) -> NDArray[np.bool_]:
    """Which runs leave out the mean of numbers at both ends, which are all that differ most."""
    collection, rng = of_number(-40, 60, epsilon), np.random.default_rng(33)
    mechanism, failing = collection.mechanism, np.zeros(runs, np.bool_)
    for run in range(runs):
        counters = np.zeros(mechanism.counters, np.int64)
        people = np.zeros(mechanism.inputs, np.int64)
        for day in range(12):
            n, more = int(20 * 1.7**day), np.zeros_like(people)
            high = rng.binomial(n, 0.3) if target.sampled else round(0.3 * n)
            more[-1], more[0] = high, n - high
            people += more
            counters = counters + simulate(collection, more, rng)
            shown = mean(collection, counters, target=target.value, looks=looks)
            share = 0.3 if target.sampled else people[-1] / people.sum()
            failing[run] |= not shown.low <= -40 + 100 * share <= shown.high
    return failing


@pytest.mark.parametrize("target", IntervalTarget)
@pytest.mark.parametrize("epsilon", ["1", pytest.param("8", marks=pytest.mark.full)])
def test_the_mean_is_never_left_out(epsilon: str, target: IntervalTarget) -> None:
    assert holds(failing_means(LookCount.EVERY, target, epsilon, RUNS_OF_MEANS))


@pytest.mark.parametrize("target", IntervalTarget)
def test_the_mean_of_a_single_look_is_left_out_in_many_runs(target: IntervalTarget) -> None:
    assert not holds(failing_means(LookCount.ONE, target, "1", RUNS_OF_MEANS))


@pytest.mark.parametrize("epsilon", ["0.5", "2", "8"])
def test_no_number_has_more_noise_than_the_worst(epsilon: str) -> None:
    """At 2,001 numbers between the ends, drawn to starts as the device does."""
    mechanism = of_number(0, 1, epsilon).mechanism
    assert isinstance(mechanism, MeanMechanism)
    levels = np.array([float(each) for each in mechanism.decoded])
    rows = np.array([[float(chance) for chance in row] for row in mechanism.transition_matrix])
    numbers = np.linspace(0, 1, 2_001)
    chances = np.stack([np.interp(numbers, rows @ levels, column) for column in rows.T], axis=1)
    for sign in (1.0, -1.0):
        worst = worst_noise(mechanism, sign)
        tilts = sign * (6.0 * 1.4 ** -np.arange(27.0)) / np.ptp(levels)
        noise = np.log(np.exp(np.outer(tilts, levels)) @ chances.T) - np.outer(tilts, numbers)

        assert (noise.max(axis=1) <= worst + 1e-12).all()
        assert (noise.max(axis=1) >= worst - 1e-3).all()


# -- the price, and what is refused ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "target"), [(1_000, IntervalTarget.POPULATION), (1_000_000, IntervalTarget.COHORT)]
)
def test_every_look_costs_less_than_double_the_width(n: int, target: IntervalTarget) -> None:
    """What the documents say: 1.8 times as wide, a difference 2.1 or, if dependent, 2.7 times."""
    widths = []
    for looks in LookCount:
        side = estimate_frequencies(
            SupportCounts(n, np.array([n // 2]), response_of(2, "1"), 1),
            IntervalTerms(0.95, target, looks=looks),
            np.arange(1),
        )
        shown = (side, compare(side, side), compare(side, side, correlation=np.zeros(1)))
        widths.append([float(each.high[0] - each.low[0]) for each in shown])
    share, difference, dependent = np.divide(widths[1], widths[0])

    assert 1.7 < share < 1.85
    assert 2.05 < difference < 2.15
    assert 2.5 < dependent < 2.75


def test_groups_and_parts_have_intervals_for_every_look() -> None:
    """Each holds the interval for one look; of those who answered, too."""
    rng = np.random.default_rng(34)
    for k, n, groups, within in (
        (20, 500, [range(5), range(4, 9)], None),
        (20, 500, [range(5), range(4, 9)], range(10)),
        (500, 20, [range(50)], None),
    ):
        collection = of_values(k, "1")
        counters = simulate(collection, np.full(k, n), rng)
        one, every = (
            sums(collection, counters, groups, within=within, target="cohort", looks=looks)
            for looks in LookCount
        )

        assert (every.low < one.low).all()
        assert (every.high > one.high).all()
    hidden = question('values = ["a", "b"]\npresence = "hidden"', "2")
    counters = simulate(hidden, np.array([900, 600, 1500]), rng)
    shown = shares(hidden, counters, among="answered", looks=LookCount.EVERY)

    assert (shown.low < [0.6, 0.4]).all()
    assert (shown.high > [0.6, 0.4]).all()


def test_the_bands_of_a_distribution_are_refused() -> None:
    collection = question('range = [0, 1]\nmeasure = "distribution"', "1")
    with pytest.raises(ValueError, match="one look alone"):
        estimate(
            collection, np.ones(collection.mechanism.counters, np.int64), looks=LookCount.EVERY
        )
