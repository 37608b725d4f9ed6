"""Shares of a group's questions, of persons whom their roots draw: covered, and better than parts.

The roots and the generator are seeded. With D questions, n Var of a share (n: all persons) is
D V(eps) of a drawn question, V(eps / D) of all at a part of epsilon each: 6.2 against 20.6.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from veilcount_analysis import estimate
from veilcount_analysis.estimation import ShareEstimates
from veilcount_analysis.simulation import simulate
from veilcount_shared import Collection, parse_collections, schedule

from ..client.device_fixtures import definitions_text

NAMES = ("a", "b", "c")
KEYS = {"unit": "user", "values": [1, 2, 3, 4]}
GROUP = '[group.habits]\nquestions = ["a", "b", "c"]\n'
PERSONS, ROUNDS = 900, 120
SHARES = np.full(4, 0.25)
#: five standard errors: below it a right interval falls with 3e-7, of rows that are independent
COVERED = 0.95 - 5 * (0.95 * 0.05 / (ROUNDS * len(NAMES))) ** 0.5
#: the spread of a mean square of some 1,000 degrees of freedom is 4.5 %: 22 % are five of it
CLOSE = 0.22


def questions(epsilon: str, *, grouped: bool) -> dict[str, Collection]:
    """Return three questions of four values each."""
    text = definitions_text(**dict.fromkeys(NAMES, KEYS))
    text = text.replace("epsilon = 1", f"epsilon = {epsilon}")
    return parse_collections(text + GROUP * grouped, lambda _: [])


@cache
def simulated(epsilon: str, *, grouped: bool) -> tuple[float, float]:
    """Return n Var of a share, n all persons, and the least coverage of a value's intervals."""
    collections = questions(epsilon, grouped=grouped)
    generator = np.random.default_rng(1)
    errors, covered = [], []
    for number in range(ROUNDS):
        roots = [(number * PERSONS + person).to_bytes(32, "big") for person in range(PERSONS)]
        for collection in collections.values():
            n = sum(schedule.is_selected(root, collection) for root in roots)
            people = generator.multinomial(n, SHARES)
            figures = estimate(collection, simulate(collection, people, generator))
            assert isinstance(figures, ShareEstimates)
            assert figures.n == n
            errors.append(figures.frequency - SHARES)
            covered.append((figures.low <= SHARES) & (figures.high >= SHARES))
    return PERSONS * float(np.mean(np.square(errors))), float(np.mean(covered, axis=0).min())


def test_each_question_of_a_group_is_covered_at_the_variance_of_a_drawn_question() -> None:
    variance, coverage = simulated("1", grouped=True)

    assert variance == pytest.approx(6.2, rel=CLOSE)
    assert coverage > COVERED


def test_parts_of_epsilon_are_three_times_worse_and_are_detected() -> None:
    """Planted: all three questions of a person, each at a third of epsilon."""
    variance, coverage = simulated("0.333333", grouped=False)

    assert variance == pytest.approx(20.6, rel=CLOSE)
    assert coverage > COVERED
    assert variance != pytest.approx(6.2, rel=CLOSE)


def test_figures_of_parts_that_are_claimed_as_whole_are_detected() -> None:
    """Planted: reports of a third of epsilon, read as those of the whole."""
    (whole, *_), (part, *_) = (
        list(questions(epsilon, grouped=True).values()) for epsilon in ("1", "0.333333")
    )
    generator = np.random.default_rng(1)
    people = np.array([PERSONS, 0, 0, 0])
    missed = 0
    for _ in range(ROUNDS):
        figures = estimate(whole, simulate(part, people, generator))
        assert isinstance(figures, ShareEstimates)
        missed += bool(figures.high[0] < 1)

    assert missed > ROUNDS * (1 - COVERED)
