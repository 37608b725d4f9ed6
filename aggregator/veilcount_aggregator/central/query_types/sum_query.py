"""The sum of numeric answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.domain import Boolean

from ...series.packed_rows import Counters
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
from ..sensitivity import sum_sensitivity


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

    def parts(self, collection: Collection, epsilon: Fraction) -> tuple[QueryPart, ...]:
        sensitivity = sum_sensitivity(collection, min(self.numbers), max(self.numbers))
        return (QueryPart("sum", 1, sensitivity, epsilon),)

    def true_values(self, collection: Collection, counters: Counters) -> list[list[int]]:
        del collection
        return [[int(counters @ np.asarray(self.numbers, np.int64))]]

    def figures(self, noised: Noised, half_widths: Sequence[int], n: int | None) -> list[Figure]:
        del n
        total = noised[0][0]
        return [(total, total - half_widths[0], total + half_widths[0])]
