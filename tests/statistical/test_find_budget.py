"""At most half a string is expected to be found by chance, whatever is tested, in whatever calls.

The sums are exact. What the budget finds is simulated, seeded: of 322 candidates of which devices
have all, 1,000,000 reports at epsilon 4 show a fifth more than by a price of their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from veilcount_analysis.estimation.confidence_intervals import quantile
from veilcount_analysis.estimation.find_budget import (
    BY_CALL,
    BY_HAND,
    PRICES,
    chance,
    chance_of_call,
    chance_of_first,
    spent_by,
)
from veilcount_analysis.mechanisms.candidate_search import Candidates, found_places
from veilcount_analysis.simulation import Population, simulate
from veilcount_shared.domain import OpenStrings

from ..analysis.estimation.collection_fixtures import question

HALF = 0.5
MILLION = 1_000_000


def expected(calls: Sequence[int], *, left_over: float = 0.5) -> float:
    """How many strings are expected by chance in these calls, all of them new candidates."""
    left, tested, total = BY_CALL, 0, 0.0
    for candidates in calls:
        tested += candidates
        total += candidates * chance_of_call(candidates, left, tested)
        left -= spent_by(candidates, left) * left_over / 0.5
    return total


def any_calls(rng: np.random.Generator) -> list[int]:
    """Small lists, large ones, or both in any order."""
    sizes = np.exp(rng.uniform(0, np.log(MILLION), rng.integers(1, 300))).astype(int)
    return [int(size) for size in np.minimum(sizes, rng.choice([1, 90, 5_000, MILLION]))]


def test_by_number_a_quarter_is_expected_at_once_or_one_by_one() -> None:
    """A quarter divided by the number so far allows 3.5 one by one."""
    one_by_one = np.array([chance(number) for number in range(1, 1_300_000)])
    ends = [float(most) for most, _ in PRICES]
    late = sum((most - before) * chance(most) for before, most in pairwise(ends[2:]))

    assert one_by_one[: int(ends[2])].sum() + late <= HALF / 2
    assert all(number * chance(number) <= HALF / 2 for number in (1, 100, 1e4, 1e6, 1e7, *ends))
    assert (np.diff(one_by_one) <= 0).all()
    assert (0.25 / np.arange(1, MILLION + 1)).sum() > 3.5
    with pytest.raises(ValueError, match="at most"):
        chance(2e10)


def test_at_most_half_a_string_is_expected_in_any_calls() -> None:
    """Planted: a budget that is not used up."""
    rng = np.random.default_rng(5)
    runs = [[1] * 5_000, [99] * 2_000, [100] * 2_000, [MILLION] * 50, [1, MILLION] * 40]
    runs += [any_calls(rng) for _ in range(300)]

    assert max(map(expected, runs)) <= HALF
    assert max(expected(calls, left_over=0.0) for calls in runs[:5]) > HALF


def test_a_first_list_is_tested_as_if_it_were_nearly_the_only_one() -> None:
    """Standard errors from which a candidate passes: 2.58 (before 3.57), 3.36 (4.44), 4.21, 5.09;
    a list by hand shows a chance find in one of twenty."""
    scores = [quantile(2 * chance_of_first(size)) for size in (10, 322, 10_000, MILLION)]

    assert scores == pytest.approx([2.576, 3.362, 4.214, 5.089], abs=0.01)
    assert 10 * chance_of_first(10) == pytest.approx(BY_HAND)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_list_finds_more_and_nothing_false(seed: int) -> None:
    """Some 125 of 322 (by the price of their number: 105), and of 322 that nobody has none."""
    collection = question('values = "open"', "4")
    domain, rng = collection.domain, np.random.default_rng(seed)
    assert isinstance(domain, OpenStrings)
    held = Candidates.from_texts(domain, [f"item {place}" for place in range(2_000)])
    weights = 1 / np.arange(1, 2_001)
    devices = rng.multinomial(MILLION, weights / weights.sum())
    counters = simulate(collection, Population(held.places, devices), rng)
    listed = Candidates.from_texts(domain, held.texts[:322])
    nobody = Candidates.from_texts(domain, [f"never {place}" for place in range(322)])

    now = len(found_places(collection, counters, listed, chance_of_first(322)))
    before = len(found_places(collection, counters, listed, 2 * chance(322)))

    assert now >= 1.1 * before
    assert before >= 90
    assert len(found_places(collection, counters, nobody, chance_of_first(322))) == 0
