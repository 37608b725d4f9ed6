"""Canaries: a right shuffler is hardly ever accused, and one that keeps the order is seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from math import exp, factorial, isclose

import numpy as np
import pytest
from numpy.random import Generator

from veilcount_analysis.estimation.clopper_pearson import upper
from veilcount_analysis.privacy.shuffled import shuffler_conduct
from veilcount_analysis.privacy.shuffled.shuffler_conduct import (
    ALPHA,
    CanaryOrder,
    batches_needed,
    count_inversions,
    drop_power,
    most_dropped,
)

#: where a shuffler puts reports that came at these hours of a day
Shuffler = Callable[[np.ndarray, Generator], np.ndarray]
SHUFFLERS: dict[str, Shuffler] = {
    "right": lambda hours, random: random.random(len(hours)),
    "full order": lambda hours, _: hours,
    "reversed": lambda hours, _: -hours,
    "blocks of 6 hours": lambda hours, random: hours // 6 + random.random(len(hours)),
    "noise of 1.2 hours": lambda hours, random: hours + random.normal(0, 1.2, len(hours)),
}
KEPT = [name for name in SHUFFLERS if name != "right"]


def positions(name: str, canaries: int, random: Generator) -> list[int]:
    """Return where a batch has the canaries, in the order of sending."""
    hours = np.sort(random.uniform(0, 24, canaries))
    places: list[int] = np.argsort(np.argsort(SHUFFLERS[name](hours, random))).tolist()
    return places


def rate(name: str, canaries: int, batches: int, trials: int = 1000) -> float:
    """Return how often a shuffler is seen to keep the order, looked at after every batch."""
    random = np.random.default_rng(36)
    return sum(is_ever_seen(name, canaries, batches, random) for _ in range(trials)) / trials


def is_ever_seen(name: str, canaries: int, batches: int, random: Generator) -> bool:
    order = CanaryOrder()
    for _ in range(batches):
        order = order.with_batch(canaries, count_inversions(positions(name, canaries, random)))
        if order.is_kept:
            return True
    return False


def mean_evidence(canaries: int, orders: Sequence[Sequence[int]]) -> float:
    """Return the expected evidence of one batch whose orders are equally likely."""
    evidence = [exp(CanaryOrder.from_batches([order]).log_evidence) for order in orders]
    return sum(evidence) / factorial(canaries)


@pytest.mark.parametrize("canaries", [2, 3, 5, 7])
def test_the_expected_evidence_of_a_right_shuffler_is_one(
    canaries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Enumerated: so it is a martingale, and reaches 100 with probability .01 at most, ever."""
    orders = list(permutations(range(canaries)))
    assert isclose(mean_evidence(canaries, orders), 1)

    # Planted: the normalization of one canary fewer.
    likelihood = shuffler_conduct._log_likelihood
    monkeypatch.setattr(
        shuffler_conduct, "_log_likelihood", lambda number, ratio: likelihood(number - 1, ratio)
    )
    assert not isclose(mean_evidence(canaries, orders), 1, rel_tol=0.01)


@pytest.mark.parametrize(("canaries", "batches"), [(16, 12), (30, 12), (3, 40)])
def test_a_right_shuffler_is_accused_by_one_look_after_each_batch_at_most_at_alpha(
    canaries: int, batches: int
) -> None:
    trials, likely = 1000, 24  # more than 24 of 1,000 at .01: probability 3e-5

    assert rate("right", canaries, batches, trials) * trials <= likely
    assert rate("full order", canaries, batches, 50) == 1


def test_a_second_look_at_a_fixed_threshold_would_accuse_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted: evidence that counts a batch twice is no evidence."""
    with_batch = CanaryOrder.with_batch

    def twice(order: CanaryOrder, canaries: int, inversions: int) -> CanaryOrder:
        return with_batch(with_batch(order, canaries, inversions), canaries, inversions)

    monkeypatch.setattr(CanaryOrder, "with_batch", twice)

    assert rate("right", 16, 12) > 3 * ALPHA


@pytest.mark.parametrize("name", KEPT)
def test_an_order_is_found_with_16_canaries_in_two_batches(name: str) -> None:
    assert rate(name, 16, 2) >= 0.999
    assert rate(name, 16, 1) >= 0.9
    assert rate(name, 30, 1) >= 0.999


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("canaries", [3, 5, 8])
def test_small_batches_need_as_many_as_is_stated(name: str, canaries: int) -> None:
    """Up to 533 reports: 3 % are 15 canaries at most, and those of several batches are added."""
    needed = batches_needed(canaries)

    assert needed is not None
    assert rate(name, canaries, needed, 300) >= 0.95
    assert rate("right", canaries, needed, 300) <= 0.03


def test_the_numbers_of_batches_that_are_needed() -> None:
    needed = {canaries: batches_needed(canaries) for canaries in (1, 2, 3, 5, 8, 12, 16, 30)}

    assert needed == {1: None, 2: 43, 3: 16, 5: 6, 8: 3, 12: 2, 16: 2, 30: 1}


def test_an_order_of_a_tenth_of_the_reports_is_not_seen() -> None:
    """Stated beside every result."""
    random = np.random.default_rng(36)

    def tenth() -> list[int]:
        places, kept = random.permutation(16), random.random(16) < 0.1
        places[kept] = np.sort(places[kept])
        return [int(place) for place in places]

    seen = sum(CanaryOrder.from_batches([tenth(), tenth()]).is_kept for _ in range(500))

    assert seen / 500 <= 0.05


def test_inversions_are_pairs_in_the_other_order() -> None:
    assert count_inversions([0, 1, 2, 9]) == 0
    assert count_inversions([900, 70, 5]) == 3
    assert count_inversions([5, 900, 70]) == 1
    assert CanaryOrder.from_batches([[], [7]]) == CanaryOrder()
    assert not CanaryOrder().is_kept


def test_30_canaries_show_a_tenth_that_is_dropped() -> None:
    random = np.random.default_rng(36)
    drops = random.random((4000, 30)) < 0.1

    assert round(drop_power(30, 0.1), 3) == 0.958
    assert abs(drops.any(axis=1).mean() - drop_power(30, 0.1)) < 0.015
    assert isclose(most_dropped(30), float(upper(0, 30, 0.05)))
    assert round(most_dropped(30), 3) == 0.095
    assert most_dropped(0) == 1
