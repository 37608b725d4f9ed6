"""What one person can change: adjacency, and sensitivity found by looking at every database."""

from __future__ import annotations

from fractions import Fraction
from statistics import median

import pytest

from tests.claims.databases import (
    BITS,
    ONE,
    PLACES,
    ZERO,
    Answer,
    Database,
    Law,
    databases,
    distance,
    ratio,
    removed,
    sensitivity,
    substituted,
)


def histogram(database: Database) -> Answer:
    """How many have each value."""
    return tuple(Fraction(database.count(value)) for value in PLACES)


def total(database: Database) -> Answer:
    """The sum."""
    return (sum(database, ZERO),)


def mean(database: Database) -> Answer:
    """The mean."""
    return (sum(database, ZERO) / len(database),)


def middle(database: Database) -> Answer:
    """The median."""
    return (Fraction(median(database)),)


def variance(database: Database) -> Answer:
    """The mean squared distance from the mean."""
    (centre,) = mean(database)
    return (sum(((x - centre) ** 2 for x in database), ZERO) / len(database),)


def test_a_histogram_moves_by_two_if_a_person_answers_otherwise() -> None:
    """Bounded adjacency: "one record is changed" takes one from a cell and gives one to another."""
    every = databases(PLACES, 3)

    assert sensitivity(histogram, every, lambda each: substituted(each, PLACES)) == 2


def test_a_histogram_moves_by_one_if_a_person_is_removed() -> None:
    """Unbounded adjacency: "one record is added or taken away" touches one cell."""
    assert sensitivity(histogram, databases(PLACES, 3), removed) == 1


@pytest.mark.parametrize("bounded", [True, False])
def test_a_count_moves_by_one_either_way(bounded: bool) -> None:  # noqa: FBT001 - both cases
    """A sum of zeros and ones: changing, adding or removing a person is worth 1 at most."""
    found = sensitivity(
        total,
        databases(BITS, 4),
        (lambda each: substituted(each, BITS)) if bounded else removed,
    )

    assert found == 1


@pytest.mark.parametrize("n", [1, 3, 5])
def test_the_global_sensitivities_are_those_of_the_formulas(n: int) -> None:
    """On [0, 1], n known: a sum has 1, a mean 1/n, a median 1, a variance (n - 1) / n^2."""
    values = PLACES if n < 5 else PLACES[::2]
    found = [
        sensitivity(query, databases(values, n), lambda each: substituted(each, values))
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


def noisy(database: Database, spread: Fraction) -> Law:
    """The median plus noise on three points, as wide as told; none where told 0."""
    (centre,) = middle(database)
    law: Law = {}
    for step, p in ((-1, Fraction(1, 4)), (0, Fraction(1, 2)), (1, Fraction(1, 4))):
        law[centre + step * spread] = law.get(centre + step * spread, ZERO) + p
    return law


def test_noise_fitted_to_the_database_at_hand_gives_it_away() -> None:
    """Local sensitivity leaks: two neighbours, one with no noise at all, are told apart at sight.

    The median of (0, 0, 0) cannot be moved by anyone; that of its neighbour (0, 0, 1) can.
    """
    quiet, loud = (ZERO, ZERO, ZERO), (ZERO, ZERO, ONE)

    assert loud in substituted(quiet, PLACES)
    assert (local_sensitivity(quiet), local_sensitivity(loud)) == (ZERO, ONE)
    assert (
        ratio(noisy(quiet, local_sensitivity(quiet)), noisy(loud, local_sensitivity(loud))) is None
    )
    assert ratio(noisy(quiet, ONE), noisy(loud, ONE)) == 1
