"""How far estimates are from the truth: no further than the best mechanisms reach.

Errors of raw shares and of means follow from the exact distribution and are compared exactly;
that simulated rounds err so much is checked besides (ALPHA: how often a right distribution fails).
"""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from math import sqrt
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from veilcount_analysis.estimation.response_distribution import ResponseDistribution
from veilcount_analysis.mechanisms import share_handler_of
from veilcount_analysis.simulation import simulate
from veilcount_shared.mechanisms import MeanMechanism, ProjectiveGeometry, SubsetSelection

from ..analysis.estimation.collection_fixtures import mean, of_number, of_values, shares
from .coverage_harness import level_probabilities

Floats = NDArray[np.float64]

ADULT = Path(__file__).parents[1] / "data" / "adult.csv.gz"
ALPHA = 1e-6
N = 100_000

#: k, epsilon, the root mean squared error in percent of a rare share, of 100,000 answers
RAW = [(2, "1", 0.31), (256, "1", 0.61), (10, "2", 0.195), (65_536, "2", 0.27), (256, "4", 0.083)]
#: k, epsilon, the mean squared error of a consistent share, of 100,000 answers falling as i^-1.3
CONSISTENT = [(64, "1", 1.9e-5), (1024, "1", 2.5e-6), (1024, "4", 2.0e-7), (65_536, "1", 5.0e-8)]


def exact_error(mechanism: SubsetSelection | ProjectiveGeometry, held: Floats) -> float:
    """The root mean squared error of shares of a cohort of 100,000, exactly."""
    squares = ResponseDistribution.from_mechanism(mechanism).variance(held, sampled=False) / N
    return float(np.sqrt(squares.mean()))


def zipf(k: int) -> Floats:
    weights = np.arange(1, k + 1, dtype=np.float64) ** -1.3
    return np.asarray(weights / weights.sum())


def errors(k: int, epsilon: str, seed: int, view: Literal["raw", "consistent"] = "raw") -> Floats:
    """What the shares of 100,000 persons were estimated as, less what they were."""
    collection, rng = of_values(k, epsilon), np.random.default_rng(seed)
    people = rng.multinomial(N, zipf(k))
    return shares(collection, simulate(collection, people, rng), view=view).frequency - people / N


@pytest.mark.parametrize(("k", "epsilon", "most"), RAW)
def test_shares_err_no_more_than_they_may(k: int, epsilon: str, most: float) -> None:
    mechanism = of_values(k, epsilon).mechanism
    assert isinstance(mechanism, SubsetSelection | ProjectiveGeometry)
    error = exact_error(mechanism, np.zeros(1))

    assert 100 * error <= most
    response = share_handler_of(mechanism).response
    assert error == pytest.approx(sqrt(response.floor / N) / response.gap)


@pytest.mark.parametrize(
    ("k", "epsilon", "rounds"), [(2, "1", 300), (10, "2", 60), (256, "1", 4), (65_536, "2", 1)]
)
def test_simulated_shares_err_as_computed(k: int, epsilon: str, rounds: int) -> None:
    """Chi-square, alpha = 1e-6; the distribution of an epsilon 30 % away would be rejected."""
    mechanism = of_values(k, epsilon).mechanism
    assert isinstance(mechanism, SubsetSelection | ProjectiveGeometry)
    squares = sum(float((errors(k, epsilon, seed) ** 2).sum()) for seed in range(rounds))
    free = rounds * (k - 1)  # the shares of one round have a fixed sum, or next to one
    expected = exact_error(mechanism, zipf(k)) ** 2 * rounds * k
    low, high = np.asarray(chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], free)) / free
    found = squares / expected

    assert low < found < high
    assert not low < found * 0.7**2 < high
    assert not low < found * 1.3**2 < high


@pytest.mark.parametrize(("k", "epsilon", "most"), CONSISTENT)
def test_consistent_shares_err_no_more_than_they_may(k: int, epsilon: str, most: float) -> None:
    """Ten seeded rounds; plain Norm-Sub would miss each of these."""
    found = [float((errors(k, epsilon, seed, "consistent") ** 2).mean()) for seed in range(10)]

    assert np.mean(found) <= most


@pytest.mark.parametrize(("epsilon", "most"), [("1", 4.05), ("2", 0.88), ("4", 0.135)])
def test_the_mean_of_any_population_has_at_most_this_variance(epsilon: str, most: float) -> None:
    """Of numbers on [-1, 1], n times; the error of a cohort's mean is the root of it over n."""
    collection = of_number(-1, 1, epsilon)
    mechanism = collection.mechanism
    assert isinstance(mechanism, MeanMechanism)
    many = np.full(mechanism.counters, 1_000)  # the noise of few is not normal
    shown = mean(collection, many, target="cohort")
    half = (shown.high - shown.low) / 2

    assert mechanism.variance <= most
    assert half == pytest.approx(1.959964 * sqrt(float(mechanism.variance) / many.sum()))


def ages() -> Counter[int]:
    with gzip.open(ADULT, "rt", encoding="utf-8") as file:
        counted = Counter(int(row["age"]) for row in csv.DictReader(file))
    assert (counted.total(), min(counted), max(counted)) == (48_842, 17, 90), "the copy is whole"
    return counted


def test_the_mean_age_of_adult_is_known_to_a_third_of_a_year() -> None:
    """At epsilon 1: the exact error of these ages, and 300 simulated rounds that agree."""
    collection, counted = of_number(17, 90), ages()
    mechanism = collection.mechanism
    assert isinstance(mechanism, MeanMechanism)
    people = np.array([counted[age] for age in range(17, 91)])
    chances = level_probabilities(mechanism, np.linspace(0, 1, 74))
    decoded = 17 + 73 * np.array([float(level) for level in mechanism.decoded])
    variances = chances @ decoded**2 - (chances @ decoded) ** 2
    error = sqrt(float(people @ variances)) / 48_842

    rng, squares, held = np.random.default_rng(4), 0.0, 0
    true = float(people @ np.arange(17, 91)) / 48_842
    for _ in range(300):
        shown = mean(collection, rng.multinomial(people, chances).sum(axis=0), target="cohort")
        squares += (shown.mean - true) ** 2 / error**2
        held += shown.low <= true <= shown.high

    assert error <= 0.335
    assert chi2.ppf(ALPHA / 2, 300) < squares < chi2.ppf(1 - ALPHA / 2, 300)
    assert held >= 270
