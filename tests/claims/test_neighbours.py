"""What one person can change: adjacency, and sensitivity found by looking at every database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from statistics import median

import pytest

from tests.claims.databases import (
    BITS,
    ONE,
    PLACES,
    ZERO,
    Answer,
    Database,
    Distribution,
    databases,
    distance,
    ratio,
    removed,
    sensitivity,
    substituted,
)


def histogram(database: Database) -> Answer:
    return tuple(Fraction(database.count(value)) for value in PLACES)


def total(database: Database) -> Answer:
    return (sum(database, ZERO),)


def mean(database: Database) -> Answer:
    return (sum(database, ZERO) / len(database),)


def middle(database: Database) -> Answer:
    return (Fraction(median(database)),)


def variance(database: Database) -> Answer:
    """The mean squared distance from the mean."""
    (centre,) = mean(database)
    return (sum(((x - centre) ** 2 for x in database), ZERO) / len(database),)


@pytest.mark.parametrize(
    ("query", "values", "bounded", "expected"),
    [
        pytest.param(histogram, PLACES, True, 2, id="a changed record: from one cell to another"),
        pytest.param(histogram, PLACES, False, 1, id="a removed record: one cell"),
        pytest.param(total, BITS, True, 1, id="a changed bit of a count"),
        pytest.param(total, BITS, False, 1, id="a removed bit of a count"),
    ],
)
def test_adjacency_decides_how_far_a_histogram_moves(
    query: Callable[[Database], Answer], values: Sequence[Fraction], expected: int, *, bounded: bool
) -> None:
    """Bounded adjacency changes a record, unbounded adds or removes one."""
    neighbours = partial(substituted, values=values) if bounded else removed

    assert sensitivity(query, databases(values, 3), neighbours) == expected


@pytest.mark.parametrize("n", [1, 3, 5])
def test_the_global_sensitivities_are_those_of_the_formulas(n: int) -> None:
    """On [0, 1], n known: a sum has 1, a mean 1/n, a median 1, a variance (n - 1) / n^2."""
    values = PLACES if n == 1 else PLACES[::2]
    found = [
        sensitivity(query, databases(values, n), partial(substituted, values=values))
        for query in (total, mean, middle, variance)
    ]

    assert found == [ONE, Fraction(1, n), ONE, Fraction(n - 1, n * n)]


def test_a_search_over_fewer_databases_would_find_less() -> None:
    """The worst case of a variance has everyone else at one end: in the middle it is not seen."""
    inner = PLACES[1:4]
    found = sensitivity(variance, databases(inner, 3), lambda each: substituted(each, inner))

    assert found < Fraction(2, 9)


def local_sensitivity(database: Database) -> Fraction:
    """How far the median of this one database can be moved by one person."""
    return max(distance(middle(database), middle(other)) for other in substituted(database, PLACES))


def noisy(database: Database, spread: Fraction) -> Distribution:
    (centre,) = middle(database)
    distribution: Distribution = {}
    for step, p in ((-1, Fraction(1, 4)), (0, Fraction(1, 2)), (1, Fraction(1, 4))):
        distribution[centre + step * spread] = distribution.get(centre + step * spread, ZERO) + p
    return distribution


def test_noise_fitted_to_the_database_at_hand_gives_it_away() -> None:
    """Local sensitivity leaks: two neighbours, one without noise, are distinguished at sight.

    The median of (0, 0, 0) cannot be moved by anyone; that of its neighbour (0, 0, 1) can.
    """
    quiet, loud = (ZERO, ZERO, ZERO), (ZERO, ZERO, ONE)

    assert loud in substituted(quiet, PLACES)
    assert (local_sensitivity(quiet), local_sensitivity(loud)) == (ZERO, ONE)
    assert (
        ratio(noisy(quiet, local_sensitivity(quiet)), noisy(loud, local_sensitivity(loud))) is None
    )
    assert ratio(noisy(quiet, ONE), noisy(loud, ONE)) == 1
