"""The mean, the variance and the sum of numeric answers.

Where n is public, a mean is a noised sum over n, and a variance adds the sum of squares, both from
the middle of the range, doubled to stay whole. Where n is secret, both follow from sums that each
answer adds the same to in all (`moment_intervals`), at the whole of epsilon.
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
from ..moment_intervals import mean_figure, variance_figure
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
from ..sensitivity import shared_sensitivity, squared_shared_sensitivity, sum_sensitivity

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
        return (_shared_part("distances", 2, collection, high - low),)

    def true_values(self, collection: Collection, counters: Counters) -> list[list[int]]:
        numbers, (low, high) = np.asarray(self.numbers, np.int64), self._ends
        if publishes_n(collection):
            return [[int(counters @ numbers)]]
        return [_sums(counters, numbers - low, high - numbers)]

    def figures(
        self, noised: Noised, noise: Sequence[DrawnNoise], alpha: float, n: int | None
    ) -> list[Figure]:
        """Return the mean, within the range; of no answers its middle, and all of it."""
        low, high = self._ends
        if n is None:
            shares = mean_figure(noised[0], noise[0], alpha)
            value, least, most = (low + (high - low) * share for share in shares)
            return [(value, least, most)]
        total, off = noised[0][0], noise[0].half_width
        means = [end / n for end in (total, total - off, total + off)] if n else []
        value, least, most = (
            min(max(mean, low), high) for mean in means or ((low + high) / 2, low, high)
        )
        return [(value, least, most)]

    @property
    def _ends(self) -> tuple[int, int]:
        return min(self.numbers), max(self.numbers)


def _range_of(numbers: Numbers) -> int:
    return max(numbers) - min(numbers)


def _shared_part(name: str, sums: int, collection: Collection, total: int) -> QueryPart:
    """Return sums that each answer adds a total to, in all of them together."""
    sensitivity = shared_sensitivity(collection, total)
    squared = squared_shared_sensitivity(collection, total)
    return QueryPart(name, sums, sensitivity, l2_squared=squared)


def _sums(counters: Counters, *terms: Counters) -> list[int]:
    return [int(counters @ term) for term in terms]


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
        if not publishes_n(collection):
            return (_shared_part("squared distances", 3, collection, width**2),)
        sums = {
            "centred sum": sum_sensitivity(collection, -width, width),
            "centred squares": sum_sensitivity(collection, 0, width**2),
        }
        return tuple(QueryPart(name, 1, far, Fraction(1, 2)) for name, far in sums.items())

    def true_values(self, collection: Collection, counters: Counters) -> list[list[int]]:
        numbers = np.asarray(self.numbers, np.int64)
        if publishes_n(collection):
            centred = 2 * numbers - numbers.min() - numbers.max()
            return [_sums(counters, centred), _sums(counters, centred**2)]
        up, down = numbers - numbers.min(), numbers.max() - numbers
        return [_sums(counters, up**2, 2 * up * down, down**2)]

    def figures(
        self, noised: Noised, noise: Sequence[DrawnNoise], alpha: float, n: int | None
    ) -> list[Figure]:
        """Return E x^2 - (E x)^2 with what the intervals leave possible, within the range."""
        if n is None:
            shares = variance_figure(noised[0], noise[0], alpha)
        else:
            shares = self._of_public_n(noised, noise, n)
        value, low, high = (_range_of(self.numbers) ** 2 * share for share in shares)
        return [(value, low, high), (sqrt(value), sqrt(low), sqrt(high))]

    def _of_public_n(self, noised: Noised, noise: Sequence[DrawnNoise], n: int) -> Figure:
        """Return it where the range is 1: the sums' range is 2."""
        width, offs = _range_of(self.numbers), [part.half_width for part in noise]
        totals = [total for (total,) in noised]
        mean, square = (
            [end / max(1, n) / width**power for end in (total, total - off, total + off)]
            for power, total, off in zip((1, 2), totals, offs, strict=True)
        )
        largest = max(bound**2 for bound in mean[1:])
        least = 0.0 if mean[1] <= 0 <= mean[2] else min(bound**2 for bound in mean[1:])
        ends = (square[0] - mean[0] ** 2, square[1] - largest, square[2] - least)
        value, low, high = (min(max(end / 4, 0.0), 0.25) for end in ends)
        return value, low, high

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
