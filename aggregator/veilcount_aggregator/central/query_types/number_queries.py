"""The mean and the sum of numeric answers.

Where n is public, a mean is a noised sum over n. Elsewhere it is two parts at half of epsilon each:
the sum from the middle of the range, doubled to stay whole, and a count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.domain import Boolean

from ...series.packed_rows import Counters
from ...series.series import publishes_n
from ..query import (
    Figure,
    Noised,
    Numbers,
    Query,
    QueryOption,
    QueryPart,
    numeric_values,
    require_summable,
)
from ..sensitivity import count_sensitivity, sum_sensitivity


@dataclass(frozen=True, slots=True)
class MeanQuery(Query):
    """The mean of the answers; `numbers` are those of the inputs, in order."""

    kind: ClassVar[str] = "mean"
    forms: ClassVar[Mapping[str, str]] = {'"mean"': "the mean of the answers"}
    order: ClassVar[int] = 3

    numbers: Numbers

    @classmethod
    def options(cls, collection: Collection) -> Iterator[QueryOption]:
        """Yield it; of a boolean it is a share."""
        if numeric_values(collection) is not None:
            boolean = isinstance(collection.domain, Boolean)
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

    def figures(self, noised: Noised, half_widths: Sequence[int], n: int | None) -> list[Figure]:
        """Return the mean, within the range."""
        low, high = self._ends
        total, off = noised[0][0], half_widths[0]
        ends = (total, total - off, total + off)
        if n is None:
            ratios = _ratio(ends, noised[1][0], half_widths[1])
            means = [(ratio + low + high) / 2 for ratio in ratios]
        elif n:
            means = [end / n for end in ends]
        else:  # of no answers nothing is known: the middle of the range, and all of it
            means = [(low + high) / 2, low, high]
        value, least, most = (min(max(each, low), high) for each in means)
        return [(value, least, most)]

    @property
    def _ends(self) -> tuple[int, int]:
        return min(self.numbers), max(self.numbers)


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
class SumQuery(Query):
    """The sum of the answers; `numbers` are those of the inputs, in order."""

    kind: ClassVar[str] = "sum"
    forms: ClassVar[Mapping[str, str]] = {'"sum"': "the sum of the answers"}
    order: ClassVar[int] = 2

    numbers: Numbers

    @classmethod
    def options(cls, collection: Collection) -> Iterator[QueryOption]:
        """Yield it, except of a boolean, where it is a count."""
        if not isinstance(collection.domain, Boolean) and numeric_values(collection) is not None:
            yield QueryOption(cls.kind, cls.forms['"sum"'])

    @classmethod
    def parse(cls, written: object, collection: Collection) -> Query | None:
        """Read `"sum"`; of a boolean it is a count, and is read as one."""
        if written != "sum" or isinstance(collection.domain, Boolean):
            return None
        return cls(require_summable("sum", collection))

    def parts(self, collection: Collection) -> tuple[QueryPart, ...]:
        sensitivity = sum_sensitivity(collection, min(self.numbers), max(self.numbers))
        return (QueryPart("sum", 1, sensitivity),)

    def true_values(self, collection: Collection, counters: Counters) -> list[list[int]]:
        return [[int(counters @ np.asarray(self.numbers, np.int64))]]

    def figures(self, noised: Noised, half_widths: Sequence[int], n: int | None) -> list[Figure]:
        total = noised[0][0]
        return [(total, total - half_widths[0], total + half_widths[0])]
