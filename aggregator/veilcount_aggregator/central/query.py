"""Queries: what is asked of the true counts, read strictly, in one form for each meaning.

| written                     | asks                                                   |
|-----------------------------|--------------------------------------------------------|
| `"histogram"`               | how many answers each value has                        |
| `"count"`                   | how many answers there are                             |
| `{"count": ["dark"]}`       | how many answers are one of these                      |
| `"age >= 40"`               | the same of a number: the collection's name, >= > <= < |
| `"sum"`, `"mean"`           | of numbers; of a boolean, true is 1                    |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, inf
from typing import Any

from veilcount_shared import Collection
from veilcount_shared.domain import Boolean, Choice, Cross, Number
from veilcount_shared.errors import format_value

from ..errors import QueryError
from ..series.tally import Counters

MAX_HISTOGRAM_VALUES = (
    1 << 16
)  # of a histogram: each value's noise costs some 7 us and a line of the answer
MAX_NUMBER = 1 << 30  # with as many answers, a sum still fits 64 bits

_THRESHOLD = re.compile(
    r" *([A-Za-z][A-Za-z0-9_-]*) *(>=|>|<=|<) *(-?[0-9]{1,20}(?:\.[0-9]{1,20})?) *"
)

Numbers = Sequence[int]


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many answers each value has."""

    size: int

    def canonical(self) -> Any:
        """Return the one spelling of this meaning."""
        return "histogram"


@dataclass(frozen=True, slots=True)
class Count:
    """How many answers have an input in one of these ranges, ends included, ascending."""

    ranges: tuple[tuple[int, int], ...]

    def canonical(self) -> Any:
        """Return the one spelling of this meaning."""
        return {"count": [list(each) for each in self.ranges]}

    def of(self, counters: Counters) -> int:
        """Return the true number."""
        return sum(int(counters[first : last + 1].sum()) for first, last in self.ranges)


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of the answers; `numbers` are those of the inputs, in order."""

    numbers: Numbers

    def canonical(self) -> Any:
        """Return the one spelling of this meaning."""
        return "sum"

    @property
    def ends(self) -> tuple[int, int]:
        """Return the least and the largest answer."""
        return min(self.numbers), max(self.numbers)


@dataclass(frozen=True, slots=True)
class Mean(Sum):
    """The mean of the answers."""

    def canonical(self) -> Any:
        """Return the one spelling of this meaning."""
        return "mean"


Query = Histogram | Count | Sum


def parse_query(given: object, collection: Collection) -> Query:
    """Return the query, or refuse what is none of this collection."""
    match given:
        case "histogram":
            return _histogram(collection)
        case "count":
            return Count(((0, collection.inputs - 1),))
        case "sum":
            numbers = _summable(given, collection)
            return Count(((1, 1),)) if list(numbers) == [0, 1] else Sum(numbers)
        case "mean":
            return Mean(_summable(given, collection))
        case str():
            return _threshold(given, collection)
        case {"count": [*values], **others} if values and not others:
            return Count(_ranges(_place(value, collection) for value in values))
    raise QueryError(
        "query", given, 'give "histogram", "count", "sum", "mean", "name >= 1" or {"count": [...]}'
    )


def numeric_values(collection: Collection) -> Numbers | None:
    """Return the number that each input stands for, where all stand for one."""
    match collection.domain:
        case Boolean():
            return (0, 1)
        case Number(low=low, high=high):
            return range(int(low), int(high) + 1)
        case Choice() as choice:
            numbers = tuple(label for label in choice.labels if isinstance(label, int))
            return numbers if len(numbers) == choice.size else None
        case Cross():
            return None


def _histogram(collection: Collection) -> Histogram:
    if collection.inputs > MAX_HISTOGRAM_VALUES:
        raise QueryError(
            "query",
            "histogram",
            f"{collection.inputs:,} values, at most {MAX_HISTOGRAM_VALUES:,}:"
            " ask for a count, sum or mean",
        )
    return Histogram(collection.inputs)


def _summable(given: str, collection: Collection) -> Numbers:
    numbers = numeric_values(collection)
    if numbers is None:
        raise QueryError("query", given, f'{collection.name} is no number: ask "histogram"')
    if max(map(abs, numbers)) > MAX_NUMBER:
        raise QueryError("query", given, f"only for numbers within +/- {MAX_NUMBER:,}: scale them")
    return numbers


def _threshold(given: str, collection: Collection) -> Count:
    found = _THRESHOLD.fullmatch(given)
    if found is None:
        raise QueryError(
            "query",
            given,
            'give "histogram", "count", "sum", "mean", or a condition such as'
            f' "{collection.name} >= 1"',
        )
    name, relation, bound = found[1], found[2], Fraction(found[3])
    numbers = numeric_values(collection)
    if name != collection.name or numbers is None or isinstance(collection.domain, Boolean):
        raise QueryError("query", given, f"compare {collection.name}, if its values are numbers")
    return _held(given, _ranges(_fulfilling(numbers, relation, bound)))


def _held(given: str, ranges: tuple[tuple[int, int], ...]) -> Count:
    if not ranges:
        raise QueryError("query", given, "no value fulfils this: the answer is 0, and free")
    return Count(ranges)


def _fulfilling(numbers: Numbers, relation: str, bound: Fraction) -> Iterator[int]:
    """Yield the inputs whose numbers fulfil the condition; the bound need not be whole."""
    least, most = {
        ">=": (ceil(bound), inf),
        ">": (floor(bound) + 1, inf),
        "<=": (-inf, floor(bound)),
        "<": (-inf, ceil(bound) - 1),
    }[relation]
    yield from (place for place, number in enumerate(numbers) if least <= number <= most)


def _place(value: object, collection: Collection) -> int:
    """Return the input of a listed value, which must be of the domain and of the type written."""
    domain = collection.domain
    if isinstance(domain, Number):
        low, high = int(domain.low), int(domain.high)
        if type(value) is not int or not low <= value <= high:
            raise QueryError("query.count", value, f"give whole numbers from {low} to {high}")
        return value - low
    place = _places(domain).get(_spelt(value))
    if place is None:
        raise QueryError("query.count", value, f"give some of {format_value(list(domain.labels))}")
    return place


@lru_cache(maxsize=16)
def _places(domain: Boolean | Choice | Cross) -> dict[str, int]:
    return {_spelt(label): place for place, label in enumerate(domain.labels)}


def _spelt(label: object) -> str:
    """Return a label as it is written: true is not 1, though Python finds them equal."""
    return repr(list(label) if isinstance(label, tuple) else label)


def _ranges(places: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return places as ascending ranges with a gap between each two: one spelling a set."""
    runs: list[list[int]] = []
    for place in sorted(set(places)):
        if runs and runs[-1][1] == place - 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return tuple((first, last) for first, last in runs)
