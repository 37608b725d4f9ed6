"""The mean, the variance and the sum of numeric answers.

Where n is public, a mean is a noised sum over n. Elsewhere it is two parts at half of epsilon each:
the sum from the middle of the range, doubled to stay whole, and a count. A variance adds the sum of
their squares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.kinds import CellLabel

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
    require_summable,
)
from ..sensitivity import count_sensitivity, sum_sensitivity

MAX_SQUARED_RANGE = 1 << 16  # of two numbers: with 2^30 answers, squares still fit 64 bits


@dataclass(frozen=True, slots=True)
class MeanQuery(ParallelQuery):
    """The mean of the answers; `numbers` are those of the inputs, in order."""

    kind: ClassVar[str] = "mean"
    forms: ClassVar[Mapping[str, str]] = {'"mean"': "the mean of the answers"}
    order: ClassVar[int] = 3

    numbers: Numbers

    @classmethod
    def options(cls, collection: Collection) -> Iterator[QueryOption]:
        """Yield it; of a boolean it is a share."""
        if collection.true_cells.numbers is not None:
            boolean = collection.true_cells.is_boolean
            yield QueryOption(cls.kind, "the share of yes" if boolean else cls.forms['"mean"'])

    @classmethod
    def parse(cls, written: object, collection: Collection) -> Query | None:
        return cls(require_summable("mean", collection)) if written == "mean" else None

    def parts(self, collection: Collection) -> tuple[QueryPart, ...]:
        low, high = self._ends
        if publishes_n(collection):
            return (QueryPart("sum", 1, sum_sensitivity(collection, low, high)),)
        centred = sum_sensitivity(collection, low - high, high - low)
        return (
            QueryPart("centred sum", 1, centred, Fraction(1, 2)),
            QueryPart("count", 1, count_sensitivity(collection), Fraction(1, 2)),
        )

    def true_values(self, collection: Collection, counters: Counters) -> list[list[int]]:
        numbers, (low, high) = np.asarray(self.numbers, np.int64), self._ends
        if publishes_n(collection):
            return [[int(counters @ numbers)]]
        return [[int(counters @ (2 * numbers - low - high))], [int(counters.sum())]]

    def figures(
        self, noised: Noised, noise: Sequence[DrawnNoise], alpha: float, n: int | None
    ) -> list[Figure]:
        """Return the mean, within the range."""
        low, high = self._ends
        total, off = noised[0][0], noise[0].half_width
        ends = (total, total - off, total + off)
        if n is None:
            ratios = _ratio(ends, noised[1][0], noise[1].half_width)
            means = [(ratio + low + high) / 2 for ratio in ratios]
        elif n:
            means = [end / n for end in ends]
        else:  # of no answers nothing is known: the middle of the range, and all of it
            means = [(low + high) / 2, low, high]
        value, least, most = (min(max(mean, low), high) for mean in means)
        return [(value, least, most)]

    @property
    def _ends(self) -> tuple[int, int]:
        return min(self.numbers), max(self.numbers)


def _range_of(numbers: Numbers) -> int:
    return max(numbers) - min(numbers)


def _ratio(ends: tuple[int, int, int], count: int, off: int) -> Iterator[float]:
    """Yield a sum over a count, and the ends of what both intervals leave possible.

    If there is any answer at all, the true count is 1 or more.
    """
    total, low, high = ends
    least, most = max(1, count - off), max(1, count + off)
    yield total / max(1, count)
    yield low / (least if low < 0 else most)
    yield high / (most if high < 0 else least)


@dataclass(frozen=True, slots=True)
class VarianceQuery(ParallelQuery):
    """The variance of the answers, and its root, from sums about the middle of the range."""

    kind: ClassVar[str] = "variance"
    forms: ClassVar[Mapping[str, str]] = {'"variance"': "the variance of the answers"}
    order: ClassVar[int] = 4

    numbers: Numbers

    @classmethod
    def options(cls, collection: Collection) -> Iterator[QueryOption]:
        numbers = collection.true_cells.numbers
        boolean = collection.true_cells.is_boolean
        if numbers is not None and not boolean and _range_of(numbers) <= MAX_SQUARED_RANGE:
            yield QueryOption(cls.kind, cls.forms['"variance"'])

    @classmethod
    def parse(cls, written: object, collection: Collection) -> Query | None:
        """Read `"variance"`; of a boolean it follows from the share."""
        if written != "variance":
            return None
        numbers = require_summable("variance", collection)
        if collection.true_cells.is_boolean:
            raise QueryError("query", written, "of a yes or no it is p (1 - p): ask for the mean")
        if _range_of(numbers) > MAX_SQUARED_RANGE:
            fix = f"only for numbers within {MAX_SQUARED_RANGE:,} of each other: scale them"
            raise QueryError("query", written, fix)
        return cls(numbers)

    def parts(self, collection: Collection) -> tuple[QueryPart, ...]:
        width = _range_of(self.numbers)
        sums = {
            "centred sum": sum_sensitivity(collection, -width, width),
            "centred squares": sum_sensitivity(collection, 0, width**2),
        }
        if not publishes_n(collection):
            sums["count"] = count_sensitivity(collection)
        share = Fraction(1, len(sums))
        return tuple(QueryPart(name, 1, far, share) for name, far in sums.items())

    def true_values(self, collection: Collection, counters: Counters) -> list[list[int]]:
        numbers = np.asarray(self.numbers, np.int64)
        centred = 2 * numbers - numbers.min() - numbers.max()
        sums = [counters @ centred, counters @ centred**2, counters.sum()]
        return [[int(total)] for total in sums[: len(self.parts(collection))]]

    def figures(
        self, noised: Noised, noise: Sequence[DrawnNoise], alpha: float, n: int | None
    ) -> list[Figure]:
        """Return E x^2 - (E x)^2 with all that both intervals leave possible, within the range."""
        count, off = (n, 0) if n is not None else (noised[2][0], noise[2].half_width)
        mean, square = (
            list(_ratio((total, total - part.half_width, total + part.half_width), count, off))
            for (total,), part in zip(noised[:2], noise[:2], strict=True)
        )
        largest = max(bound**2 for bound in mean[1:])
        least = 0.0 if mean[1] <= 0 <= mean[2] else min(bound**2 for bound in mean[1:])
        most = _range_of(self.numbers) ** 2 / 4
        ends = (square[0] - mean[0] ** 2, square[1] - largest, square[2] - least)
        value, low, high = (min(max(end / 4, 0.0), most) for end in ends)
        return [(value, low, high), (sqrt(value), sqrt(low), sqrt(high))]

    def labels(self, collection: Collection, noised: Noised) -> tuple[CellLabel, ...]:
        return (self.kind, "standard deviation")


@dataclass(frozen=True, slots=True)
class SumQuery(ParallelQuery):
    """The sum of the answers; `numbers` are those of the inputs, in order."""

    kind: ClassVar[str] = "sum"
    forms: ClassVar[Mapping[str, str]] = {'"sum"': "the sum of the answers"}
    order: ClassVar[int] = 2

    numbers: Numbers

    @classmethod
    def options(cls, collection: Collection) -> Iterator[QueryOption]:
        """Yield it, except of a boolean, where it is a count."""
        if not collection.true_cells.is_boolean and collection.true_cells.numbers is not None:
            yield QueryOption(cls.kind, cls.forms['"sum"'])

    @classmethod
    def parse(cls, written: object, collection: Collection) -> Query | None:
        """Read `"sum"`; of a boolean it is a count, and is read as one."""
        if written != "sum" or collection.true_cells.is_boolean:
            return None
        return cls(require_summable("sum", collection))

    def parts(self, collection: Collection) -> tuple[QueryPart, ...]:
        sensitivity = sum_sensitivity(collection, min(self.numbers), max(self.numbers))
        return (QueryPart("sum", 1, sensitivity),)

    def true_values(self, collection: Collection, counters: Counters) -> list[list[int]]:
        return [[int(counters @ np.asarray(self.numbers, np.int64))]]

    def figures(
        self, noised: Noised, noise: Sequence[DrawnNoise], alpha: float, n: int | None
    ) -> list[Figure]:
        total = noised[0][0]
        return [(total, total - noise[0].half_width, total + noise[0].half_width)]
