"""Which of two values a person gave to a curator: the best attacker's success, worked out exactly.

The attacker knows everybody else's answers, holds the two values equally likely, and sees one
release. His success is half of 1 + the distance in total variation of the release's two
distributions, summed here over the noise's own probabilities.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcount_analysis.releases import PricedQuery, part_noise
from veilcount_analysis.releases.query_types.histogram_query import HistogramQuery
from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency
from veilcount_shared.composition import MAX_ANSWERS, guessing_probability
from veilcount_shared.guessing import distinguishing_probability
from veilcount_shared.notice import notice
from veilcount_shared.periods import Unit

from ..aggregator.releases.release_fixtures import (
    ADD_REMOVE,
    SUBSTITUTE,
    ask,
    collection,
    true_values,
    whole,
)

ONE = Fraction(1)
TAIL = 60  # of the scale: what lies beyond is below e^-60
MONTHS = 3
NUMBERS = whole(-1, 1)
ADJACENCIES = (ADD_REMOVE, SUBSTITUTE)
QUERIES = ("histogram", "count", "age >= 1", {"count": [-1]}, "sum", "mean")

Floats = NDArray[np.float64]
Bound = Callable[[Collection, int], Fraction]


def success(question: PricedQuery, one: int, other: int, answers: int) -> float:
    """The best attacker's chance to be right, where a person gave as many equal answers."""
    counters = [np.zeros(question.collection.inputs, np.int64) for _ in range(2)]
    counters[0][one], counters[1][other] = answers, answers
    scales = [part.scale for part in part_noise(question)]
    true = [true_values(question, counter) for counter in counters]
    shifts = [
        (x - y, scale)
        for a, b, scale in zip(*true, scales, strict=True)
        for x, y in zip(a, b, strict=True)
        if x != y
    ]
    return (1 + _distance(shifts)) / 2 if shifts else 0.5


def _distance(shifts: list[tuple[int, float]]) -> float:
    """The total variation between independent noises, and the same ones shifted."""
    at_zero, shifted = zip(*(_two(shift, scale) for shift, scale in shifts), strict=True)
    one, other = (reduce(np.multiply.outer, each) for each in (at_zero, shifted))
    return float(np.abs(one - other).sum()) / 2


def _two(shift: int, scale: float) -> tuple[Floats, Floats]:
    reach = int(TAIL * scale) + abs(shift)
    places = np.arange(-reach, reach + 1)
    q = np.exp(-1 / scale)
    return tuple((1 - q) / (1 + q) * q ** np.abs(places - by) for by in (0, shift))


def survey(adjacency: Adjacency, unit: Unit = Unit.MONTH, per_day: int = 1) -> Collection:
    return collection(NUMBERS, adjacency, unit=unit, per_day=per_day, budget=ONE)


def by_two_values(surveyed: Collection, answers: int) -> Fraction:
    return distinguishing_probability(surveyed, answers)


def by_composition(surveyed: Collection, answers: int) -> Fraction:
    """The bound that ignores the adjacency, and takes a curator's answers for independent ones."""
    return guessing_probability(surveyed.unit_epsilon, min(answers, MAX_ANSWERS))


def breaks(bound: Bound, adjacency: Adjacency) -> list[str]:
    """The releases of one month and of all by which an attacker does better than the bound."""
    surveyed = survey(adjacency)
    found = []
    for query in QUERIES:
        for month, answers in ((1, 1), (None, MONTHS)):
            if query == "count" and adjacency is SUBSTITUTE:
                continue  # n is public there and is not sold
            right = success(ask(surveyed, query, 1, month=month), 0, 2, answers)
            if right > bound(surveyed, answers) + 1e-12:
                found.append(f"{query} of {answers}: {right:.3f}")
    return found


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_release_distinguishes_two_values_better_than_the_bound(adjacency: Adjacency) -> None:
    assert breaks(by_two_values, adjacency) == []


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_bound_of_independent_answers_is_broken(adjacency: Adjacency) -> None:
    """The same check against the figure that ignores adjacency and composes: it fails."""
    assert breaks(by_composition, adjacency)


def test_a_days_equal_events_are_in_one_number() -> None:
    """Four events of one day: their sum is shifted by all of them, far beyond composition."""
    surveyed = survey(ADD_REMOVE, Unit.EVENT, per_day=4)
    question = ask(surveyed, "sum", 1)
    right = success(question, 0, 2, 4)

    assert not isinstance(question.query, HistogramQuery)
    assert guessing_probability(2 * ONE, 4) < right <= distinguishing_probability(surveyed, 4)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_notice_states_a_true_bound_and_its_adjacency(adjacency: Adjacency) -> None:
    surveyed = survey(adjacency)
    text = next(part.text for part in notice(surveyed).texts() if part.title.endswith("gives away"))
    one, every = (float(each) / 20 for each in re.findall(r"at most ([0-9.]+) times in 20", text))

    assert success(ask(surveyed, "sum", 1, month=1), 0, 2, 1) <= one
    assert success(ask(surveyed, "sum", 1), 0, 2, MONTHS) <= every
    assert ("by add-remove" in text) == (adjacency is ADD_REMOVE)
    assert ("by substitution" in text) == (adjacency is SUBSTITUTE)
    assert ("between two answers, 6 for all of them" in text) == (adjacency is ADD_REMOVE)
