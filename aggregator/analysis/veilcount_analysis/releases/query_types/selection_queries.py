"""Selections by noisy max: the most frequent value, and quantiles.

Report noisy max adds noise to a score of each candidate and releases which is largest, no score
[MS20; exponential noise for epsilon, Gumbel noise for rho]. Its cost does not grow with the number
of candidates, and with probability 1 - alpha the one that it names is at most scale x ln(k / alpha)
below the best of k.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency
from veilcount_shared.kinds import CellLabel

from ...errors import QueryError
from ...series.packed_rows import Counters
from ..noise_kinds import DrawnNoise
from ..query import (
    CandidateScores,
    Figure,
    Noised,
    Numbers,
    Query,
    QueryOption,
    QueryPart,
    count_interval,
)
from ..sensitivity import contributions, count_sensitivity, rank_sensitivity
from .histogram_query import MAX_HISTOGRAM_VALUES

Scores = NDArray[np.int64]

_QUANTILE = re.compile(r" *quantile +(0\.[0-9]{1,4}) *")


def _require_candidates(query: object, collection: Collection) -> None:
    if collection.inputs > MAX_HISTOGRAM_VALUES:
        most = f"{collection.inputs:,} values, at most {MAX_HISTOGRAM_VALUES:,}"
        raise QueryError("query", query, f"{most}: ask for a count, sum or mean")


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
        _require_candidates(written, collection)
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


@dataclass(frozen=True, slots=True)
class QuantileQuery(Query):
    """The least number at or below which a share of the answers lies, with its interval.

    Three selections at a third of the cost each: the number, and two that aim below and above its
    rank by as much as they may miss. So their true ranks are on either side of it, each but with
    its part of 1 - level, whatever the answers.
    """

    kind: ClassVar[str] = "quantile"
    forms: ClassVar[Mapping[str, str]] = {
        '"median"': "the median of the answers",
        '"quantile 0.9"': "a quantile of the answers",
    }
    order: ClassVar[int] = 5

    numbers: Numbers
    share: Fraction

    @classmethod
    def options(cls, collection: Collection) -> Iterator[QueryOption]:
        if collection.true_cells.interval and collection.inputs <= MAX_HISTOGRAM_VALUES:
            yield QueryOption("median", cls.forms['"median"'])

    @classmethod
    def describe(cls, written: object) -> str:
        match = _QUANTILE.fullmatch(written) if isinstance(written, str) else None
        if match:
            return f"the {match[1]}-quantile of the answers"
        return cls.forms.get(json.dumps(written), "")

    @classmethod
    def parse(cls, written: object, collection: Collection) -> Query | None:
        """Read `"median"` or `"quantile 0.9"`, of numbers."""
        if not isinstance(written, str):
            return None
        match = _QUANTILE.fullmatch("quantile 0.5" if written == "median" else written)
        if match is None:
            return None
        share = Fraction(match[1])
        if not share:
            raise QueryError("query", written, "give a share above 0, such as 0.9")
        cells = collection.true_cells
        numbers = None if cells.is_boolean else cells.numbers
        if numbers is None:
            raise QueryError("query", written, f"{collection.name} has no numbers to order")
        _require_candidates(written, collection)
        return cls(numbers, share)

    def canonical(self) -> Any:
        return {"quantile": str(self.share)}

    def parts(self, collection: Collection) -> tuple[QueryPart, ...]:
        steps = self.share.denominator  # ranks are in parts of an answer, so that scores are whole
        far, third = rank_sensitivity(collection, self.share), Fraction(1, 3)
        chosen = CandidateScores(monotonic=False, steps=steps)
        return tuple(
            QueryPart(name, len(self.numbers), far, third, selection=chosen)
            for name in ("quantile", "lower end", "upper end")
        )

    def part_values(
        self, collection: Collection, counters: Counters, drawn: Noised, widths: Sequence[int]
    ) -> list[int]:
        aim = (0, -1, 1)[len(drawn)]
        shift = aim * (widths[len(drawn)] * self.share.denominator + 1)
        return [int(score) for score in self._scores(counters, shift)]

    def _scores(self, counters: Counters, shift: int) -> Scores:
        """Return minus how far each number is from the rank p n, in parts of an answer.

        With p = a / b: a number is the quantile if b x (those below) <= a n + shift and b x (those
        above) <= (b - a) n - shift. The least number is below any rank, the largest above any.
        """
        a, b = self.share.numerator, self.share.denominator
        order = self._order
        held, n = np.asarray(counters)[order], int(counters.sum())
        up_to = held.cumsum()
        below = b * (up_to - held) - a * n - shift
        above = b * (n - up_to) - (b - a) * n + shift
        below[0], above[-1] = 0, 0
        return np.asarray(-np.maximum(0, np.maximum(below, above)), np.int64)

    @property
    def _order(self) -> NDArray[np.int64]:
        return np.argsort(np.asarray(self.numbers), kind="stable")

    def figures(
        self, noised: Noised, noise: Sequence[DrawnNoise], alpha: float, n: int | None
    ) -> list[Figure]:
        """Return the number and its interval; it is the interval that has the level."""
        ordered = np.sort(np.asarray(self.numbers))
        value, low, high = (int(ordered[part[0]]) for part in noised)
        return [(value, min(low, value), max(high, value))]
