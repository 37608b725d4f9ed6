"""Differences of two estimates: intervals, p-values, families, and the detectable difference."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from veilcount_analysis.estimation import (
    DifferenceEstimate,
    IntervalTarget,
    ShareEstimates,
    compare,
)
from veilcount_analysis.estimation.difference import holm
from veilcount_analysis.simulation import simulate
from veilcount_shared import Collection

from .collection_fixtures import falling, mean, of_number, of_values, received, shares

Ints = NDArray[np.int64]


def drawn(
    collection: Collection, people: Ints, rng: np.random.Generator, target: str = "auto"
) -> ShareEstimates:
    return shares(collection, simulate(collection, people, rng), target=target)


def two(
    collection: Collection, one: list[int], other: list[int], seed: int = 1
) -> DifferenceEstimate:
    rng = np.random.default_rng(seed)
    return compare(*(drawn(collection, np.array(each), rng) for each in (one, other)))


def test_a_true_difference_is_found_and_every_sentence_states_the_detectable_one() -> None:
    """Two shares that mirror each other are one figure."""
    clear = two(of_values(2), [5000, 5000], [4000, 6000])
    unclear = two(of_values(2), [500, 500], [490, 510])
    found, missed = (each.sentence(0, "dark", "arm A", "arm B") for each in (clear, unclear))

    assert clear.differs.all()
    assert clear.difference[0] == pytest.approx(0.1, abs=0.05)
    assert clear.low[0] > 0 > clear.high[1]
    assert clear.family == 1
    assert clear.holm == pytest.approx(clear.p)
    assert re.search(r"arm A is \d+ to \d+ of 100 higher than arm B .* a difference, p = ", found)
    assert re.search(r"no difference seen; one of \d+ of 100 would have been seen 4 times", missed)
    assert all("95 % interval" in each for each in (found, missed))


def test_the_detectable_difference_is_found_in_four_of_five() -> None:
    """Simulated at exactly the detectable difference: 100 pairs, 0.8 +/- 4 errors."""
    collection, rng, n, rounds = of_values(2), np.random.default_rng(4), 8000, 100
    even = np.array([n // 2, n // 2])
    smallest = float(compare(*(drawn(collection, even, rng, "cohort") for _ in "ab")).detectable[0])
    moved = np.array([n // 2 + round(n * smallest), n // 2 - round(n * smallest)])
    found = sum(
        bool(
            compare(*(drawn(collection, each, rng, "cohort") for each in (moved, even))).differs[0]
        )
        for _ in range(rounds)
    )

    assert abs(found / rounds - 0.8) < 4 * np.sqrt(0.8 * 0.2 / rounds)


def test_chance_differences_of_many_values_are_not_significant_as_a_family() -> None:
    """Two samples of one population, 300 values: at 5 % about 15 of them look different.

    test_comparison_coverage.py has how many intervals hold; p never disagrees with them.
    """
    people = falling(300, 20_000)
    result = two(of_values(300), list(people), list(people))

    assert 3 <= (result.p <= 0.05).sum() <= 40
    assert not result.differs.any()
    assert ((result.p <= 0.05) == ((result.low > 0) | (result.high < 0))).all()
    assert "among 300 compared values" in result.sentence(int(np.argmin(result.p)), "x", "A", "B")


def test_holm_is_the_step_down_of_the_smallest_p() -> None:
    p = np.array([0.01, 0.04, 0.03, 0.005])

    assert holm(p, 4) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert (holm(p, 4) >= np.asarray(false_discovery_control(p)) - 1e-12).all()
    assert (holm(p, 1) >= p).all()


def test_means_are_compared_in_their_own_units() -> None:
    collection = of_number(0, 240)
    levels = collection.mechanism.counters
    low, high = np.full(levels, 3000), np.full(levels, 3000)
    high[-4:] += 1500
    one, other = (mean(collection, each) for each in (high, low))
    result = compare(one, other)

    assert result.difference[0] == pytest.approx(one.mean - other.mean)
    assert result.low[0] > 0
    assert "of 100" not in result.sentence(0, "minutes", "A", "B")


def test_a_cohort_and_a_sample_are_compared_as_cohorts_and_other_values_not_at_all() -> None:
    people = received(of_values(2), [40, 60])
    sample, cohort = (shares(of_values(2), people, target=it) for it in ("population", "cohort"))
    three = shares(of_values(3), received(of_values(3), falling(3, 50)))

    assert compare(sample, cohort).estimand == "of the answers in these n reports"
    assert compare(sample, sample).estimand == "of everybody who could have been asked"
    assert sample.terms.target is IntervalTarget.POPULATION
    with pytest.raises(ValueError, match="same values"):
        compare(three, sample)
