"""Counts: how many answers fulfil a condition, are one of some values, or are there at all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, floor, inf
from typing import Any, ClassVar

from veilcount_shared import Collection

from ...errors import QueryError
from ...series.packed_rows import Counters
from ...series.series import publishes_n
from ..noise_kinds import DrawnNoise
from ..query import (
    Figure,
    Noised,
    Numbers,
    ParallelQuery,
    Query,
    QueryOption,
    QueryPart,
    count_interval,
    ranges_from,
)
from ..sensitivity import count_sensitivity

MOST_LISTED = 5  # values of a text

_THRESHOLD = re.compile(
    r" *([A-Za-z][A-Za-z0-9_-]*) *(>=|>|<=|<) *(-?[0-9]{1,20}(?:\.[0-9]{1,20})?) *"
)


@dataclass(frozen=True, slots=True)
class CountingQuery(ParallelQuery):
    """How many answers have an input in one of these ranges, ends included, ascending."""

    kind: ClassVar[str] = "count"
    forms: ClassVar[Mapping[str, str]] = {
        '"count"': "how many answers there are",
        '{"count": [...]}': "how many answers are one of some values",
        '"NAME >= 1"': "how many answers fulfil a condition",
    }
    order: ClassVar[int] = 1

    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def options(cls, collection: Collection) -> Iterator[QueryOption]:
        """Yield a condition or a list of values, and the count of all, which is free if public."""
        cells = collection.true_cells
        if cells.interval:
            text, half = cls.forms['"NAME >= 1"'], cells.interval[-1] // 2
            example = f"{collection.name} >= {half}"
            yield QueryOption("condition", text, "Condition", example, read=str)
        elif cells.labels and not cells.is_boolean:
            labels = {spell_label(label): label for label in cells.labels}
            text, example = cls.forms['{"count": [...]}'], next(iter(labels))
            read = partial(_listed, labels)
            yield QueryOption("some", text, "Values, one a line", example, 2, read)
        if not publishes_n(collection):
            yield QueryOption(cls.kind, cls.forms['"count"'])
        if cells.is_boolean:
            yield QueryOption("sum", "how many answers are yes")

    @classmethod
    def describe(cls, written: object) -> str:
        """Return a count in words, with its condition or its first values."""
        match written:
            case {"count": [*values]}:
                names = [spell_label(value) for value in values]
                rest = len(names) - MOST_LISTED
                more = f" or {rest} more" if rest > 0 else ""
                return f"how many answers are {' or '.join(names[:MOST_LISTED])}{more}"
            case str() if _THRESHOLD.fullmatch(written):
                return f"how many answers have {written}"
        return cls.forms.get(json.dumps(written), "")

    @classmethod
    def parse(cls, written: object, collection: Collection) -> Query | None:
        """Read `"count"`, `{"count": ["dark"]}`, `"age >= 40"`, or the sum of a boolean."""
        match written:
            case "count":
                return cls.count_all(collection)
            case "sum" if collection.true_cells.is_boolean:
                return cls(((1, 1),))
            case {"count": [*values], **others} if values and not others:
                return cls(ranges_from(_cell(value, collection) for value in values))
            case str() if match := _THRESHOLD.fullmatch(written):
                return cls(_threshold_ranges(written, match, collection))
        return None

    @classmethod
    def count_all(cls, collection: Collection) -> CountingQuery:
        """Return the count of all answers."""
        return cls(((0, collection.inputs - 1),))

    def canonical(self) -> Any:
        return {"count": [list(ends) for ends in self.ranges]}

    def parts(self, collection: Collection) -> tuple[QueryPart, ...]:
        return (QueryPart("count", 1, count_sensitivity(collection)),)

    def true_values(self, collection: Collection, counters: Counters) -> list[list[int]]:
        return [[sum(int(counters[first : last + 1].sum()) for first, last in self.ranges)]]

    def figures(
        self, noised: Noised, noise: Sequence[DrawnNoise], alpha: float, n: int | None
    ) -> list[Figure]:
        return [count_interval(noised[0][0], noise[0].half_width)]


def spell_label(label: object) -> str:
    """Return a value as people read it; of a cross product, its parts."""
    if isinstance(label, tuple | list):
        return ", ".join(map(spell_label, label))
    return label if isinstance(label, str) else json.dumps(label)


def _listed(known: Mapping[str, object], text: str) -> object:
    """Return the count of values that are typed one a line."""
    typed = [line.strip() for line in text.splitlines() if line.strip()]
    unknown = [line for line in typed if line not in known]
    if unknown or not typed:
        fix = f"give values, one a line, such as {', '.join(list(known)[:MOST_LISTED])}"
        raise QueryError("argument", unknown[0] if unknown else "", fix)
    labels = [known[line] for line in dict.fromkeys(typed)]
    return {"count": [list(label) if isinstance(label, tuple) else label for label in labels]}


def _threshold_ranges(
    written: str, found: re.Match[str], collection: Collection
) -> tuple[tuple[int, int], ...]:
    name, relation, bound = found[1], found[2], Fraction(found[3])
    cells = collection.true_cells
    numbers = None if cells.is_boolean else cells.numbers
    if name != collection.name or numbers is None:
        raise QueryError("query", written, f"compare {collection.name}, if its values are numbers")
    ranges = ranges_from(_fulfilling(numbers, relation, bound))
    if not ranges:
        raise QueryError("query", written, "no value fulfils this: the answer is 0, and free")
    return ranges


def _fulfilling(numbers: Numbers, relation: str, bound: Fraction) -> Iterator[int]:
    """Yield the inputs whose numbers fulfil the condition; the bound need not be whole."""
    least, most = {
        ">=": (ceil(bound), inf),
        ">": (floor(bound) + 1, inf),
        "<=": (-inf, floor(bound)),
        "<": (-inf, ceil(bound) - 1),
    }[relation]
    yield from (place for place, number in enumerate(numbers) if least <= number <= most)


def _cell(value: object, collection: Collection) -> int:
    """Return the counter of a value, which must be of the type written."""
    cell = collection.true_cells.find(value)
    if cell is None:
        raise QueryError("query.count", value, collection.true_cells.choice)
    return cell
