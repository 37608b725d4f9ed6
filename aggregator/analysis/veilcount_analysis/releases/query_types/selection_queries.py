"""A selection by noisy max: the most frequent value.

Report noisy max adds noise to a score of each candidate and releases which is largest, no score
[MS20; exponential noise for epsilon, Gumbel noise for rho]. Its cost does not grow with the number
of candidates, and with probability 1 - alpha the one that it names is at most scale x ln(k / alpha)
below the best of k.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency
from veilcount_shared.kinds import CellLabel

from ...series.packed_rows import Counters
from ..noise_kinds import DrawnNoise
from ..query import CandidateScores, Figure, Noised, Query, QueryOption, QueryPart, count_interval
from ..sensitivity import contributions, count_sensitivity
from .histogram_query import MAX_HISTOGRAM_VALUES, require_few_values


@dataclass(frozen=True, slots=True)
class MostFrequentQuery(Query):
    """The most frequent value by noisy max, and how many answers it has, at half the cost each."""

    kind: ClassVar[str] = "most_frequent"
    forms: ClassVar[Mapping[str, str]] = {'"most_frequent"': "which value is most frequent"}
    order: ClassVar[int] = 4

    size: int

    @classmethod
    def options(cls, collection: Collection) -> Iterator[QueryOption]:
        if collection.inputs <= MAX_HISTOGRAM_VALUES:
            yield QueryOption(cls.kind, cls.forms['"most_frequent"'])

    @classmethod
    def parse(cls, written: object, collection: Collection) -> Query | None:
        if written != cls.kind:
            return None
        require_few_values(written, collection)
        return cls(collection.inputs)

    def parts(self, collection: Collection) -> tuple[QueryPart, ...]:
        """Return the choice, whose scores all grow with one more answer, and the count."""
        grow = collection.adjacency is Adjacency.ADD_REMOVE
        chosen, half = CandidateScores(monotonic=grow), Fraction(1, 2)
        return (
            QueryPart("selection", self.size, contributions(collection), half, selection=chosen),
            QueryPart("count", 1, count_sensitivity(collection), half),
        )

    def part_values(
        self, collection: Collection, counters: Counters, drawn: Noised, widths: Sequence[int]
    ) -> list[int]:
        if not drawn:
            return [int(counter) for counter in counters]
        return [int(counters[drawn[0][0]])]

    def figures(
        self, noised: Noised, noise: Sequence[DrawnNoise], alpha: float, n: int | None
    ) -> list[Figure]:
        return [count_interval(noised[1][0], noise[1].half_width)]

    def labels(self, collection: Collection, noised: Noised) -> tuple[CellLabel, ...]:
        return (collection.true_cells.labels[noised[0][0]],)
