"""Sensitivities by brute force: every small database beside every neighbour of it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from tests.aggregator.central.release_fixtures import (
    ADD_REMOVE,
    SUBSTITUTE,
    Counters,
    ask,
    collection,
    whole,
)
from veilcount_aggregator.central import PricedQuery, draw_release
from veilcount_shared.collection import Adjacency
from veilcount_shared.domain import Boolean, Choice, Number

Database = tuple[int, ...]  # the input of each unit, sorted

QUERIES: list[tuple[Boolean | Choice | Number, object]] = [
    (Choice(("a", "b", "c")), "histogram"),
    (Choice(("a", "b", "c")), {"count": ["a", "c"]}),
    (Choice(("a", "b", "c")), "count"),
    (Boolean(), "sum"),
    (Boolean(), "mean"),
    (whole(0, 3), "age >= 2"),
    (whole(0, 3), "sum"),
    (whole(2, 4), "sum"),
    (whole(-4, -2), "sum"),
    (whole(-1, 3), "sum"),
    (whole(-3, 1), "sum"),
    (whole(2, 4), "mean"),
    (whole(-1, 3), "mean"),
    (Choice((7, -2, 1)), "sum"),
    (Choice((7, -2, 1)), "mean"),
]


def databases(inputs: int) -> Iterator[Database]:
    for size in range(4):
        yield from combinations_with_replacement(range(inputs), size)


def neighbours(database: Database, inputs: int, adjacency: Adjacency) -> Iterator[Database]:
    for place in range(len(database)):
        rest = database[:place] + database[place + 1 :]
        if adjacency is ADD_REMOVE:
            yield rest
        else:
            yield from (tuple(sorted((*rest, other))) for other in range(inputs))


def true(question: PricedQuery, database: Database) -> list[list[int]]:
    counters: Counters = np.bincount(database, minlength=question.collection.inputs)
    released = draw_release(
        question, counters.astype(np.int64), noise=lambda exact, scale: list(exact)
    )
    return [list(part) for part in released.noised]


def farthest(question: PricedQuery, adjacency: Adjacency) -> list[int]:
    """The largest L1 distance of each part over all pairs of neighbours."""
    inputs = question.collection.inputs
    found = [0] * len(question.parts)
    for database in databases(inputs):
        here = true(question, database)
        for neighbour in neighbours(database, inputs, adjacency):
            for part, (one, two) in enumerate(zip(here, true(question, neighbour), strict=True)):
                distance = sum(abs(a - b) for a, b in zip(one, two, strict=True))
                found[part] = max(found[part], distance)
    return found


CASES = [
    (domain, query, month, adjacency)
    for domain, query in QUERIES
    for month in (None, 1)
    for adjacency in (ADD_REMOVE, SUBSTITUTE)
    if (query, month, adjacency) != ("count", 1, SUBSTITUTE)  # public: it is not sold
]


@pytest.mark.parametrize(("domain", "query", "month", "adjacency"), CASES, ids=str)
def test_no_neighbour_is_farther_than_the_sensitivity_and_one_is_as_far(
    domain: Boolean | Choice | Number, query: object, month: int | None, adjacency: Adjacency
) -> None:
    answers = None if month else 2  # of three: then n is withheld under either adjacency
    question = ask(collection(domain, adjacency, answers=answers), query, month=month)
    found = farthest(question, adjacency)
    claimed = [part.sensitivity for part in question.parts]
    counts_all = [part.name == "count" and query in ("count", "mean") for part in question.parts]

    for far, most, counts_everyone in zip(found, claimed, counts_all, strict=True):
        # A substitute leaves the number of units alone: noise on it is for the persons they are.
        assert far == (0 if counts_everyone and adjacency is SUBSTITUTE else most)


def test_the_parts_of_a_question_share_its_epsilon() -> None:
    for domain, query in QUERIES:
        for adjacency in (ADD_REMOVE, SUBSTITUTE):
            question = ask(collection(domain, adjacency, answers=2), query, "0.7")

            assert sum(part.epsilon for part in question.parts) == Fraction(7, 10)
