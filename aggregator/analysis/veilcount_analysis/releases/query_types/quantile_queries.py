"""Quantiles of a number: with intervals from one noised tree, or a single number by noisy max.

A tree over the values holds how many answers are up to each, so every quantile follows from one
release. Where only the number is wanted, one noisy max over the ranks has less error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veilcount_shared import Collection
from veilcount_shared.kinds import CellLabel

from ...errors import QueryError
from ...series.packed_rows import Counters
from ..noise import noise_distribution
from ..noise_kinds import DrawnNoise, NoiseKind
from ..prefix_sums import MAX_PERIODS, PrefixStrategy, best_strategy
from ..quantile import crossing
from ..query import (
    CandidateScores,
    Figure,
    Noised,
    Numbers,
    ParallelQuery,
    Query,
    QueryOption,
    QueryPart,
)
from ..sensitivity import histogram_sensitivity, rank_sensitivity, squared_histogram_sensitivity
from .histogram_query import MAX_HISTOGRAM_VALUES, require_few_values

MAX_LEAVES = MAX_PERIODS  # of a tree: of more values, each leaf is several
SHARES = tuple(Fraction(share, 20) for share in range(1, 20))
_QUANTILE = re.compile(r" *(?:median|quantile +(0\.[0-9]{1,4}))( +point)? *")


def _share(written: str, collection: Collection, *, point: bool) -> Fraction | None:
    """Return the share of "median", "quantile 0.9" or "median point"; None: another query."""
    match = _QUANTILE.fullmatch(written)
    if match is None or bool(match[2]) is not point:
        return None
    share = Fraction(match[1] or "0.5")
    if not share:
        raise QueryError("query", written, "give a share above 0, such as 0.9")
    _require_numbers(written, collection)
    return share


def _require_numbers(written: str, collection: Collection) -> None:
    cells = collection.true_cells
    if cells.is_boolean or cells.numbers is None:
        raise QueryError("query", written, f"{collection.name} has no numbers to order")
    require_few_values(written, collection)


def _is_offered(collection: Collection) -> bool:
    return bool(collection.true_cells.interval) and collection.inputs <= MAX_HISTOGRAM_VALUES


@dataclass(frozen=True, slots=True)
class QuantileQuery(ParallelQuery):
    """Numbers at or below which shares of the answers lie, with their intervals."""

    kind: ClassVar[str] = "quantile"
    forms: ClassVar[Mapping[str, str]] = {
        '"median"': "the median of the answers",
        '"quantile 0.9"': "a quantile of the answers",
        '"quantiles"': "the quantiles of the answers",
    }
    order: ClassVar[int] = 5

    numbers: Numbers
    shares: tuple[Fraction, ...]
    noise: NoiseKind = NoiseKind.LAPLACE

    @classmethod
    def options(cls, collection: Collection) -> Iterator[QueryOption]:
        if _is_offered(collection):
            yield QueryOption("median", cls.forms['"median"'])
            yield QueryOption("quantiles", cls.forms['"quantiles"'])

    @classmethod
    def describe(cls, written: object) -> str:
        match = _QUANTILE.fullmatch(written) if isinstance(written, str) else None
        if match and match[1] and not match[2]:
            return f"the {match[1]}-quantile of the answers"
        return cls.forms.get(json.dumps(written), "")

    @classmethod
    def parse(cls, written: object, collection: Collection) -> Query | None:
        """Read `"median"`, `"quantile 0.9"` or `"quantiles"`, of numbers."""
        if not isinstance(written, str):
            return None
        if written == "quantiles":
            _require_numbers(written, collection)
            shares = SHARES
        elif (share := _share(written, collection, point=False)) is not None:
            shares = (share,)
        else:
            return None
        return cls(tuple(collection.true_cells.numbers or ()), shares)

    def over(self, periods: range, noise: NoiseKind, collection: Collection) -> Query:
        """Return it under a kind of noise, which decides the tree."""
        return replace(self, noise=noise)

    def canonical(self) -> Any:
        return {"quantile": [str(share) for share in self.shares]}

    @property
    def _starts(self) -> NDArray[np.int64]:
        """The first place of each leaf, in ascending order of the numbers."""
        size = len(self.numbers)
        step = -(-size // MAX_LEAVES)
        return np.arange(0, size, step)

    @property
    def _strategy(self) -> PrefixStrategy:
        """The tree with the least error at the median, for all shares."""
        return best_strategy(len(self._starts), self.noise, 0.5)

    def parts(self, collection: Collection) -> tuple[QueryPart, ...]:
        """Return the tree: an answer is in a column of it, and another's has no entry below 0."""
        tree = self._strategy
        far = histogram_sensitivity(collection) * tree.l1
        squared = squared_histogram_sensitivity(collection) * tree.l2_squared
        return (QueryPart("tree of values", len(tree.rows), far, l2_squared=squared),)

    def true_values(self, collection: Collection, counters: Counters) -> list[list[int]]:
        ascending = np.asarray(counters)[np.argsort(self.numbers, kind="stable")]
        leaves = np.add.reduceat(ascending, self._starts)
        return [[int(row) for row in self._strategy.rows @ leaves]]

    def figures(
        self, noised: Noised, noise: Sequence[DrawnNoise], alpha: float, n: int | None
    ) -> list[Figure]:
        totals, numbers = self._strategy.totals, np.sort(self.numbers)
        drawn = noise_distribution(noise[0].distribution, noise[0].scale)
        starts, up_to = self._starts, totals @ np.array(noised[0], np.float64)
        ends = np.append(starts[1:], len(numbers)) - 1
        figures: list[Figure] = []
        for share in map(float, self.shares):
            widths = drawn.weighted_half_widths(totals - share * totals[-1], alpha)
            place, low, high = crossing(up_to - share * up_to[-1], widths)
            middle = (starts[place] + ends[place]) // 2
            value, least, most = (int(numbers[at]) for at in (middle, starts[low], ends[high]))
            figures.append((value, least, most))
        return figures

    def labels(self, collection: Collection, noised: Noised) -> tuple[CellLabel, ...]:
        if len(self.shares) == 1:
            return (self.kind,)
        return tuple(f"{float(share):g}" for share in self.shares)


@dataclass(frozen=True, slots=True)
class QuantilePointQuery(Query):
    """The least number at or below which a share of the answers lies, without an interval."""

    kind: ClassVar[str] = "quantile_point"
    forms: ClassVar[Mapping[str, str]] = {
        '"median point"': "the median of the answers, without an interval",
        '"quantile 0.9 point"': "a quantile of the answers, without an interval",
    }
    order: ClassVar[int] = 5

    numbers: Numbers
    share: Fraction

    @classmethod
    def options(cls, collection: Collection) -> Iterator[QueryOption]:
        if _is_offered(collection):
            yield QueryOption("median point", cls.forms['"median point"'])

    @classmethod
    def describe(cls, written: object) -> str:
        match = _QUANTILE.fullmatch(written) if isinstance(written, str) else None
        if match and match[1] and match[2]:
            return f"the {match[1]}-quantile of the answers, without an interval"
        return cls.forms.get(json.dumps(written), "")

    @classmethod
    def parse(cls, written: object, collection: Collection) -> Query | None:
        """Read `"median point"` or `"quantile 0.9 point"`, of numbers."""
        share = _share(written, collection, point=True) if isinstance(written, str) else None
        return None if share is None else cls(tuple(collection.true_cells.numbers or ()), share)

    def canonical(self) -> Any:
        return {"quantile point": str(self.share)}

    def parts(self, collection: Collection) -> tuple[QueryPart, ...]:
        steps = self.share.denominator  # ranks are in parts of an answer, so that scores are whole
        far, chosen = (
            rank_sensitivity(collection, self.share),
            CandidateScores(monotonic=False, steps=steps),
        )
        return (QueryPart("quantile", len(self.numbers), far, selection=chosen),)

    def part_values(
        self, collection: Collection, counters: Counters, drawn: Noised, widths: Sequence[int]
    ) -> list[int]:
        """Return minus how far each number is from the rank p n, in parts of an answer.

        With p = a / b: a number is the quantile if b x (those below) <= a n and b x (those above)
        <= (b - a) n. The least number is below any rank, the largest above any.
        """
        a, b = self.share.numerator, self.share.denominator
        ascending = np.asarray(counters)[np.argsort(self.numbers, kind="stable")]
        n, up_to = int(counters.sum()), ascending.cumsum()
        below, above = b * (up_to - ascending) - a * n, b * (n - up_to) - (b - a) * n
        below[0], above[-1] = 0, 0
        return [int(score) for score in -np.maximum(0, np.maximum(below, above))]

    def figures(
        self, noised: Noised, noise: Sequence[DrawnNoise], alpha: float, n: int | None
    ) -> list[Figure]:
        """Return the number; as to where the true one is, the whole range is possible."""
        numbers = sorted(self.numbers)
        return [(numbers[noised[0][0]], numbers[0], numbers[-1])]
