"""Small databases, all of them, and what it means that two are neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

Database = tuple[Fraction, ...]
Answer = tuple[Fraction, ...]
Distribution = dict[Any, Fraction]  # of outcomes of any kind

ZERO, ONE = Fraction(0), Fraction(1)
BITS = (ZERO, ONE)
PLACES = tuple(Fraction(place, 4) for place in range(5))  # in [0, 1]


def databases(values: Sequence[Fraction], size: int) -> Iterator[Database]:
    return product(values, repeat=size)


def substituted(database: Database, values: Sequence[Fraction]) -> Iterator[Database]:
    """Yield the neighbours that differ in one person's record: bounded adjacency."""
    for place in range(len(database)):
        for value in values:
            yield (*database[:place], value, *database[place + 1 :])


def removed(database: Database) -> Iterator[Database]:
    """Yield the neighbours without one of the persons: unbounded adjacency, from the larger."""
    for place in range(len(database)):
        yield (*database[:place], *database[place + 1 :])


def distance(one: Answer, two: Answer) -> Fraction:
    return sum((abs(x - y) for x, y in zip(one, two, strict=True)), ZERO)


def sensitivity(
    query: Callable[[Database], Answer],
    every: Iterable[Database],
    neighbours: Callable[[Database], Iterable[Database]],
) -> Fraction:
    """The largest distance between the answers of two neighbours: found by looking at all."""
    return max(
        distance(query(database), query(neighbour))
        for database in every
        for neighbour in neighbours(database)
    )


def ratio(one: Distribution, two: Distribution) -> Fraction | None:
    """The largest ratio of an outcome's two probabilities, either way; None: no bound."""
    if {x for x, p in one.items() if p} != {x for x, p in two.items() if p}:
        return None
    return max(max(p / two[x], two[x] / p) for x, p in one.items() if p)


def image(distribution: Distribution, function: Callable[[Any], object]) -> Distribution:
    """The distribution of a function of the outcome."""
    result: Distribution = {}
    for outcome, p in distribution.items():
        key = function(outcome)
        result[key] = result.get(key, ZERO) + p
    return result


def joint(*distributions: Distribution) -> Distribution:
    result: Distribution = {(): ONE}
    for distribution in distributions:
        result = {
            (*seen, outcome): chance * p
            for seen, chance in result.items()
            for outcome, p in distribution.items()
        }
    return result
