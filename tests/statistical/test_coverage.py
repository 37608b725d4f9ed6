"""Every interval covers its estimand as often as it claims, and not much more often.

The support of one value has an exact distribution, binomial for a sample and a sum of two for a
cohort, so its coverage is a sum of probabilities and no simulation. Whatever has none is
simulated, seeded; a setting fails only if its true coverage is below the target with a confidence
of 99.99 % (ALPHA, Clopper-Pearson).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from veilcount_analysis.estimation import IntervalTarget
from veilcount_analysis.estimation.proportions import SupportCounts
from veilcount_analysis.estimation.response_distribution import ResponseDistribution
from veilcount_shared.mechanisms import MeanMechanism, SubsetSelection, select_mechanism

from ..analysis.estimation.collection_fixtures import of_number
from .coverage_harness import LEAST, Support, coverage, support
from .distributions import with_epsilon
from .random_settings import half_width_of, simulated_mean_coverage

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


@pytest.mark.one_in(4)
@pytest.mark.parametrize("target", IntervalTarget)
@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_an_interval_covers_as_often_as_it_claims(
    epsilon: str, k: int, target: IntervalTarget
) -> None:
    """From a single answer on, where the exact tails take over too; from nobody to everyone."""
    response = ResponseDistribution.from_mechanism(select_mechanism(k, epsilon).mechanism)
    turn = min(round(70 / response.Q), 100_000)
    for n, share in product((1, 12, 150, turn, 10_000), SHARES):
        covers = coverage(response, n, share, target)

        assert covers >= LEAST, (n, share)
        assert covers <= MOST or expected(response, n, share, target) < LARGE, (n, share)


def test_answers_of_the_same_persons_are_no_sample_of_the_population() -> None:
    """At epsilon 4: 400 persons, asked thirty times with the same value, are not 12,000."""
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
    for epsilon, n in (("1", 12), ("8", 2_000), ("0.5", 10_000)):
        response = ResponseDistribution.from_mechanism(select_mechanism(256, epsilon).mechanism)
        for share in SHARES[::3]:
            likely, true = support(response, n, share, target)
            low, high = SupportCounts(n, likely.counts, response, 1).interval(1 - level, target)
            missed = likely.chances @ ((low > true + 1e-12) | (high < true - 1e-12))

            assert missed <= 1.5 * (1 - level), (epsilon, n, share)


# -- simulated; random settings are in `test_coverage_corners.py` ----------------------------------


def test_a_mean_of_devices_with_another_epsilon_is_not_covered() -> None:
    """The same levels, sent with 30 % less epsilon: pulled to the middle, and seen to be."""
    collection = of_number()
    claimed = collection.mechanism
    assert isinstance(claimed, MeanMechanism)
    held, half = (np.array([0.9]), np.array([30_000])), half_width_of(collection, claimed, 30_000)
    found, planted = (
        simulated_mean_coverage(claimed, held, half, rounds=200, start=10, truly=truly)
        for truly in (claimed, with_epsilon(claimed, Fraction("0.7")))
    )

    assert found.could_be(LEAST, ALPHA)
    assert not planted.could_be(LEAST, ALPHA)
