"""Every interval covers its estimand as often as it claims.

The support of one value has an exact distribution, binomial for a sample and a sum of two for a
cohort, so its coverage is a sum of probabilities and no simulation. Whatever has none is
simulated, seeded; a setting fails only if its true coverage is below the target with a confidence
of 99.99 % (ALPHA, Clopper-Pearson).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.aggregator.estimation.collection_fixtures import (
    falling,
    mean,
    of_number,
    of_values,
    question,
    shares,
    sums,
)
from tests.statistical.coverage_harness import (
    LEAST,
    Support,
    counters_of,
    coverage,
    level_probabilities,
    support,
)
from veilcount_aggregator.analysis.simulation import simulate
from veilcount_aggregator.estimation import IntervalTarget, ShareEstimates
from veilcount_aggregator.estimation.clopper_pearson import upper
from veilcount_aggregator.estimation.proportions import SupportCounts
from veilcount_aggregator.estimation.response_distribution import ResponseDistribution
from veilcount_shared.mechanisms import (
    MeanMechanism,
    ProjectiveGeometry,
    SubsetSelection,
    select_mechanism,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = 0.985
LARGE = 100  # expected counts, of either outcome, from which an interval must not be too wide
ALPHA = 1e-4

EPSILONS = ("0.5", "2", "8")  # with --full all of them
SIZES = (2, 10, 256, 65_536)
SHARES = (0.0, 0.0003, 0.002, 0.01, 0.05, 0.3, 0.5, 0.97, 1.0)


# -- exactly, from the distribution of a support --------------------------------------------------


def expected(response: ResponseDistribution, n: int, share: float, target: IntervalTarget) -> float:
    """The count that makes the interval: the rarer outcome, or, in a cohort, what is noise."""
    if target is IntervalTarget.POPULATION:
        chance = response.Q + share * response.gap
        return n * min(chance, 1 - chance)
    return n * (share * response.P * (1 - response.P) + (1 - share) * response.Q * (1 - response.Q))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("target", IntervalTarget)
@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_an_interval_covers_as_often_as_it_claims(
    epsilon: str, k: int, target: IntervalTarget
) -> None:
    """From a single answer to 30,000, from nobody to everyone."""
    response = ResponseDistribution.from_mechanism(select_mechanism(k, epsilon).mechanism)
    for n in (1, 12, 150, 2_000, 30_000):
        for share in SHARES:
            covers = coverage(response, n, share, target)

            assert covers >= LEAST, (n, share)
            assert covers <= MOST or expected(response, n, share, target) < LARGE, (n, share)


@pytest.mark.full
@pytest.mark.parametrize("target", IntervalTarget)
@pytest.mark.parametrize("k", [*SIZES, 3, 64, 1024])
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "4", "8", "12"])
def test_an_interval_covers_at_every_size(epsilon: str, k: int, target: IntervalTarget) -> None:
    """Around the counts at which the exact tails take over, too."""
    response = ResponseDistribution.from_mechanism(select_mechanism(k, epsilon).mechanism)
    turns = {
        round(count / response.Q) for count in (30, 50, 70, 100, 150) if count / response.Q < 3e5
    }
    for n in sorted({2, 5, 25, 60, 400, 1_000, 8_000, 100_000} | turns):
        for share in np.concatenate([SHARES, np.linspace(0, 1, 41)]):
            covers = coverage(response, n, float(share), target)

            assert covers >= LEAST, (n, share)
            assert covers <= MOST or expected(response, n, share, target) < LARGE, (n, share)


@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("epsilon", ["0.5", "1", "4"])
def test_thirty_answers_of_devices_that_never_change_are_a_cohort(epsilon: str, k: int) -> None:
    """400 devices, 30 periods: each device's value is drawn once, its noise thirty times."""
    response = ResponseDistribution.from_mechanism(select_mechanism(k, epsilon).mechanism)
    for share in SHARES:
        covers = coverage(response, 30 * 400, round(400 * share) / 400, IntervalTarget.COHORT)

        assert covers >= LEAST
        assert covers <= MOST or expected(response, 12_000, share, IntervalTarget.COHORT) < LARGE


def test_as_a_sample_of_the_population_they_would_be_covered_too_seldom() -> None:
    """At epsilon 4 the same 400 persons, asked thirty times, are taken for 12,000."""
    response = ResponseDistribution.from_mechanism(select_mechanism(10, "4").mechanism)
    devices = Support.binomial(400, 0.3)
    covers = 0.0
    for holders, chance in zip(devices.counts, devices.chances, strict=True):
        likely, _ = support(response, 12_000, holders / 400, IntervalTarget.COHORT)
        low, high = SupportCounts(12_000, likely.counts, response, 1).interval(
            0.05, IntervalTarget.POPULATION
        )
        covers += chance * float(likely.chances @ ((low <= 0.3) & (high >= 0.3)))

    assert covers < 0.5


@pytest.mark.parametrize("target", IntervalTarget)
@pytest.mark.parametrize("factor", ["0.7", "1.3"])
def test_the_distribution_of_another_epsilon_is_not_covered(
    factor: str, target: IntervalTarget
) -> None:
    """The check rejects what it should: devices that use 30 % less or more than was claimed."""
    for k in (2, 10):
        mechanism = select_mechanism(k, "1").mechanism
        assert isinstance(mechanism, SubsetSelection)
        truly = ResponseDistribution.from_mechanism(
            SubsetSelection.for_epsilon(Fraction(factor), k, mechanism.w)
        )

        assert (
            coverage(ResponseDistribution.from_mechanism(mechanism), 30_000, 0.9, target, truly)
            < 0.6
        )


@pytest.mark.one_in(2)
@pytest.mark.parametrize("level", [0.8, 0.99, 0.9999])
@pytest.mark.parametrize("target", IntervalTarget)
def test_other_levels_are_kept_too(level: float, target: IntervalTarget) -> None:
    """A far tail errs no more than half again as often as it may."""
    for epsilon, n in (("1", 12), ("8", 2_000), ("4", 30_000), ("0.5", 30_000)):
        response = ResponseDistribution.from_mechanism(select_mechanism(256, epsilon).mechanism)
        for share in SHARES[::3]:
            likely, true = support(response, n, share, target)
            low, high = SupportCounts(n, likely.counts, response, 1).interval(1 - level, target)
            missed = likely.chances @ ((low > true + 1e-12) | (high < true - 1e-12))

            assert missed <= 1.5 * (1 - level), (epsilon, n, share)


# -- simulated -------------------------------------------------------------------------------------


def holds_often_enough(held: Ints | int, rounds: int, least: float = LEAST) -> bool:
    """Whether the rounds leave room for the least coverage, for every figure."""
    return bool((upper(held, rounds, ALPHA / 2) >= least).all())


Mode = Literal["population", "cohort"]
MODES: tuple[Mode, ...] = ("population", "cohort")


def answering(people: Ints, mode: Mode, rng: np.random.Generator) -> Ints:
    """Who answers: a sample of the population with these shares, or exactly these people."""
    n = int(people.sum())
    return people if mode == "cohort" else rng.multinomial(n, people / n)


def held(
    people: Ints, mode: Mode, rounds: int, look: Callable[[Ints], ShareEstimates], true: Floats
) -> Ints:
    """How often each interval held the truth."""
    rng, total = np.random.default_rng(11), np.zeros(len(true), np.int64)
    for _ in range(rounds):
        shown = look(answering(people, mode, rng))
        total += (shown.low <= true + 1e-12) & (true - 1e-12 <= shown.high)
    return total


@dataclass(frozen=True)
class GroupCase:
    """A question, who answers, and groups of values; `within` those within another."""

    k: int
    epsilon: str
    n: int
    groups: tuple[range, ...]
    within: range | None = None


GROUPS = {
    "subset": GroupCase(20, "1", 2_000, (range(5), range(10, 20))),
    "subset, few": GroupCase(20, "1", 25, (range(5), range(10, 20))),
    "one input": GroupCase(3_000, "8", 300, (range(1), range(1, 30), range(1_000, 2_000))),
    "rare subset": GroupCase(8_000, "8", 400, (range(1), range(5, 20), range(4_000, 8_000))),
    "plane": GroupCase(500, "1", 3_000, (range(1), range(5), range(5, 500, 3))),
    "plane, few": GroupCase(500, "1", 40, (range(1), range(5), range(5, 500, 3))),
    "of a group": GroupCase(20, "1", 2_000, (range(1), range(1, 5)), range(5)),
    "of a group, one input": GroupCase(6, "4", 200, (range(1), range(1, 3)), range(3)),
    "of a group of a plane": GroupCase(300, "2", 4_000, (range(1), range(1, 5)), range(5)),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("rounds", [100, pytest.param(1_500, marks=pytest.mark.full)])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", GROUPS)
def test_sums_over_groups_are_covered(name: str, mode: Mode, rounds: int) -> None:
    """Of 100 rounds 80 are too few; with --full 1,500 rounds."""
    case, rng = GROUPS[name], np.random.default_rng(5)
    collection, people = of_values(case.k, case.epsilon), falling(case.k, case.n)
    whole = people[case.within].sum() if case.within else case.n
    true = np.array([people[group].sum() for group in case.groups]) / whole

    def look(persons: Ints) -> ShareEstimates:
        counters = simulate(collection, persons, rng)
        return sums(collection, counters, case.groups, within=case.within, target=mode)

    assert holds_often_enough(held(people, mode, rounds, look, true), rounds)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rounds", [200, pytest.param(2_000, marks=pytest.mark.full)])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [60, 2_000])
def test_shares_of_those_who_answered_are_covered(size: int, mode: Mode, rounds: int) -> None:
    """Seven of ten devices had nothing to say, and are not known."""
    collection = question('values = ["a", "b", "c", "d"]\npresence = "hidden"', "2")
    people, rng = np.array([3, 2, 1, 0, 14]) * size // 20, np.random.default_rng(6)

    def look(persons: Ints) -> ShareEstimates:
        counters = simulate(collection, persons, rng)
        return shares(collection, counters, among="answered", target=mode)

    true = people[:-1] / people[:-1].sum()

    assert holds_often_enough(held(people, mode, rounds, look, true), rounds)


@pytest.mark.parametrize("k", [3, 12, 300])
def test_simultaneous_intervals_hold_all_at_once(k: int) -> None:
    """And not by being far too wide: singly they are, together they are not."""
    collection, people, rounds = of_values(k, "1"), falling(k, 8_000), 200
    rng, together = np.random.default_rng(8), 0
    for _ in range(rounds):
        counters = simulate(collection, people, rng)
        shown = shares(collection, counters, simultaneous=True, target="cohort")
        true = people / 8_000
        together += bool(((shown.low <= true) & (true <= shown.high)).all())

    assert holds_often_enough(together, rounds)
    assert together < rounds


# -- means -----------------------------------------------------------------------------------------

#: numbers from 0 to 1, and how many of 1,000 persons have each
NUMBERS: dict[str, dict[float, int]] = {
    "all at the low end": {0.0: 1000},
    "all in the middle": {0.47: 1000},
    "one in a hundred far off": {0.0: 990, 1.0: 10},
    "two halves": {0.1: 500, 0.9: 500},
    "spread": dict.fromkeys(np.linspace(0, 1, 20).tolist(), 50),
}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("rounds", [150, pytest.param(400, marks=pytest.mark.full)])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("epsilon", ["0.5", "2", "8"])
@pytest.mark.parametrize("spread", NUMBERS)
def test_means_are_covered_from_the_first_answers_on(
    spread: str, epsilon: str, mode: Mode, rounds: int
) -> None:
    """Answers of 20 and of 1,000 persons, in the units of the range."""
    collection = of_number(-40, 60, epsilon)
    mechanism = collection.mechanism
    assert isinstance(mechanism, MeanMechanism)
    numbers = np.array(list(NUMBERS[spread]))
    thousand = np.array(list(NUMBERS[spread].values()))
    for counts in (thousand // 50, thousand):
        n, covered = counts.sum(), 0
        true = -40 + 100 * float(counts @ numbers) / n
        levels = level_probabilities(mechanism, numbers)
        drawn = counters_of(levels, counts, mode, np.random.default_rng(9))
        for _, counters in zip(range(rounds), drawn, strict=False):
            shown = mean(collection, counters, target=mode)
            covered += shown.low <= true <= shown.high

        assert holds_often_enough(covered, rounds), (n, covered / rounds)


def test_a_mean_of_devices_with_another_epsilon_is_not_covered() -> None:
    """The same levels, sent with 30 % less epsilon: pulled to the middle, and seen to be."""
    collection, rng, covered = of_number(), np.random.default_rng(10), 0
    claimed = collection.mechanism
    assert isinstance(claimed, MeanMechanism)
    truly = _at(claimed, Fraction("0.7"))
    drawn = counters_of(
        level_probabilities(truly, np.array([0.9])), np.array([30_000]), "cohort", rng
    )
    for _, counters in zip(range(200), drawn, strict=False):
        shown = mean(collection, counters, target="cohort")
        covered += shown.low <= 0.9 <= shown.high

    assert not holds_often_enough(covered, 200)


@cache
def _at(claimed: MeanMechanism, epsilon: Fraction) -> MeanMechanism:
    window = claimed.window
    return MeanMechanism(
        type(window).for_epsilon(epsilon, window.levels, window.width), claimed.values
    )


def test_the_grid_has_every_mechanism() -> None:
    mechanisms = {
        type(select_mechanism(k, epsilon).mechanism) for k in SIZES for epsilon in EPSILONS
    }

    assert mechanisms == {SubsetSelection, ProjectiveGeometry}
