"""The running total: after each period, how many answers there were so far, or their sum.

All totals come from one noised vector, whose strategy is chosen by its predicted error
(`prefix_sums`). Each period pays the price of the release once, however many totals it is in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from math import ceil
from typing import ClassVar

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.kinds import CellLabel
from veilcount_shared.schedule import period_end

from ...errors import QueryError
from ...series.packed_rows import Counters
from ...series.series import publishes_n
from ..discrete_gaussian import DiscreteGaussianNoise
from ..discrete_laplace import DiscreteLaplaceNoise
from ..noise import noise_distribution
from ..noise_kinds import DrawnNoise, NoiseKind
from ..prefix_sums import MAX_PERIODS, PrefixStrategy, best_strategy
from ..query import (
    ErrorBound,
    Figure,
    Noised,
    ParallelQuery,
    Query,
    QueryOption,
    QueryPart,
    counters_a_period,
    require_summable,
)
from ..sensitivity import count_sensitivity, sum_sensitivity

MAX_TOTALLED_NUMBER = 1 << 15  # with 2^30 answers, weighted sums still fit 64 bits
MAX_COUNTERS = 1 << 24  # of all periods together, which are read one by one


@dataclass(frozen=True, slots=True)
class RunningTotalQuery(ParallelQuery):
    """The total up to the end of each period: of yes, of a number's answers, else of answers."""

    kind: ClassVar[str] = "running_total"
    forms: ClassVar[Mapping[str, str]] = {'"running_total"': "the total so far, after each period"}
    order: ClassVar[int] = 6
    by_period: ClassVar[bool] = True

    weights: tuple[int, ...] | None  # of each input; None: each counts as 1
    sensitivity: int
    periods: range = range(1)
    noise: NoiseKind = NoiseKind.LAPLACE

    @classmethod
    def options(cls, collection: Collection) -> Iterator[QueryOption]:
        try:
            offered = cls.parse(cls.kind, collection)
        except QueryError:
            return
        if offered is not None and collection.periods > 1:
            yield QueryOption(cls.kind, cls.forms['"running_total"'])

    @classmethod
    def parse(cls, written: object, collection: Collection) -> Query | None:
        if written != cls.kind:
            return None
        cells = collection.true_cells
        if cells.is_boolean or cells.interval:
            numbers = tuple(require_summable(cls.kind, collection))
            if max(map(abs, numbers)) > MAX_TOTALLED_NUMBER:
                most = f"within +/- {MAX_TOTALLED_NUMBER:,}"
                raise QueryError("query", written, f"only for numbers {most}: scale them")
            return cls(numbers, sum_sensitivity(collection, min(numbers), max(numbers)))
        if publishes_n(collection):
            raise QueryError("query", written, "this number is public here: it costs nothing")
        return cls(None, count_sensitivity(collection))

    def over(self, periods: range, noise: NoiseKind, collection: Collection) -> Query:
        """Return it over some periods, which decide the strategy."""
        most = min(MAX_PERIODS, MAX_COUNTERS // counters_a_period(collection))
        if len(periods) > most:
            raise QueryError("to", len(periods), f"give at most {most} periods of these values")
        return replace(self, periods=periods, noise=noise)

    @property
    def strategy(self) -> PrefixStrategy:
        """What noise is added to."""
        return best_strategy(len(self.periods), self.noise)

    def parts(self, collection: Collection) -> tuple[QueryPart, ...]:
        chosen, far = self.strategy, self.sensitivity
        squared = chosen.l2_squared * far**2
        size = len(chosen.rows)
        return (QueryPart(chosen.name, size, chosen.l1 * far, l2_squared=squared),)

    def true_values(self, collection: Collection, counters: Counters) -> list[list[int]]:
        """Return the strategy's integers; `counters` has a row for each period."""
        if self.weights is None:
            totals = counters.sum(axis=1)
        else:
            totals = counters @ np.asarray(self.weights, np.int64)
        return [[int(row) for row in self.strategy.rows @ totals]]

    def figures(
        self, noised: Noised, noise: Sequence[DrawnNoise], alpha: float, n: int | None
    ) -> list[Figure]:
        totals = self.strategy.totals @ np.array(noised[0], np.float64)
        drawn = noise_distribution(noise[0].distribution, noise[0].scale)
        widths = self.strategy.half_widths(drawn, alpha)
        return [
            (float(total), float(total - width), float(total + width))
            for total, width in zip(totals, widths, strict=True)
        ]

    def error_width(self, noise: ErrorBound, alpha: float) -> int:
        """Return the widest of its totals' half widths."""
        assert isinstance(noise, DiscreteLaplaceNoise | DiscreteGaussianNoise)  # noqa: S101 - types
        return ceil(float(self.strategy.half_widths(noise, alpha).max()))

    def labels(self, collection: Collection, noised: Noised) -> tuple[CellLabel, ...]:
        """Return the last day of each period."""
        ends = (period_end(collection, period).date() for period in self.periods)
        return tuple((end - timedelta(days=1)).isoformat() for end in ends)
