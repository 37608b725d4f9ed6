"""The histogram: how many answers each value has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from veilcount_shared import Collection
from veilcount_shared.kinds import CellLabel

from ...errors import QueryError
from ...series.packed_rows import Counters
from ..noise_kinds import DrawnNoise
from ..query import Figure, Noised, ParallelQuery, Query, QueryOption, QueryPart, count_interval
from ..sensitivity import histogram_sensitivity, squared_histogram_sensitivity

MAX_HISTOGRAM_VALUES = 1 << 16  # each value's noise costs some 7 us and a line of the answer


def require_few_values(written: object, collection: Collection) -> None:
    """Refuse a query of each value where there are too many."""
    if collection.inputs > MAX_HISTOGRAM_VALUES:
        most = f"{collection.inputs:,} values, at most {MAX_HISTOGRAM_VALUES:,}"
        raise QueryError("query", written, f"{most}: ask for a count, sum or mean")


@dataclass(frozen=True, slots=True)
class HistogramQuery(ParallelQuery):
    """How many answers each value has. One answer is in one cell: c, or 2 c when substituted."""

    kind: ClassVar[str] = "histogram"
    forms: ClassVar[Mapping[str, str]] = {'"histogram"': "how many answers each value has"}

    size: int

    @classmethod
    def options(cls, collection: Collection) -> Iterator[QueryOption]:
        if collection.inputs <= MAX_HISTOGRAM_VALUES:
            yield QueryOption(cls.kind, cls.forms['"histogram"'])

    @classmethod
    def parse(cls, written: object, collection: Collection) -> Query | None:
        if written != "histogram":
            return None
        require_few_values(written, collection)
        return cls(collection.inputs)

    def parts(self, collection: Collection) -> tuple[QueryPart, ...]:
        squared = squared_histogram_sensitivity(collection)
        sensitivity = histogram_sensitivity(collection)
        return (QueryPart("histogram", self.size, sensitivity, l2_squared=squared),)

    def true_values(self, collection: Collection, counters: Counters) -> list[list[int]]:
        return [counters.tolist()]

    def figures(
        self, noised: Noised, noise: Sequence[DrawnNoise], alpha: float, n: int | None
    ) -> list[Figure]:
        return [count_interval(count, noise[0].half_width) for count in noised[0]]

    def labels(self, collection: Collection, noised: Noised) -> tuple[CellLabel, ...]:
        return tuple(collection.true_cells.labels)
