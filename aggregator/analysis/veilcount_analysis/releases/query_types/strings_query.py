"""Open strings above a threshold: partition selection.

Which strings exist is secret itself: noise on those that do and on no others would show the rest.
So what noise is added to is released only from a threshold on that one person's strings pass with
probability delta at most [KKMN09]. A string is counted by its hash, and hashes are released; to
name candidates in them afterwards is free (`queries.named_strings`).
"""

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


@dataclass(frozen=True, slots=True)
class StringsQuery(ParallelQuery):
    """How many answers have each hash of open strings, of those that pass the threshold."""

    kind: ClassVar[str] = "strings"
    forms: ClassVar[Mapping[str, str]] = {'"strings"': "the strings that many have"}
    by_hash: ClassVar[bool] = True

    @classmethod
    def options(cls, collection: Collection) -> Iterator[QueryOption]:
        if collection.true_cells.is_hashed:
            yield QueryOption(cls.kind, cls.forms['"strings"'])

    @classmethod
    def parse(cls, written: object, collection: Collection) -> Query | None:
        if written != cls.kind:
            return None
        if not collection.true_cells.is_hashed:
            raise QueryError("query", written, f'{collection.name} lists its values: "histogram"')
        return cls()

    def parts(self, collection: Collection) -> tuple[QueryPart, ...]:
        return (
            QueryPart(
                "strings",
                collection.inputs,
                histogram_sensitivity(collection),
                l2_squared=squared_histogram_sensitivity(collection),
                has_threshold=True,
            ),
        )

    def true_values(self, collection: Collection, counters: Counters) -> list[list[int]]:
        """Return the hashes that there are, and their counts, by turns."""
        return [counters.T.ravel().tolist()]

    def figures(
        self, noised: Noised, noise: Sequence[DrawnNoise], alpha: float, n: int | None
    ) -> list[Figure]:
        return [count_interval(count, noise[0].half_width) for count in noised[0][1::2]]

    def labels(self, collection: Collection, noised: Noised) -> tuple[CellLabel, ...]:
        """Return the hash of each count."""
        return tuple(noised[0][::2])
