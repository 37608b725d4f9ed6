"""Two sides compared as parts of a population: their shares reweighted to its margins."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from veilcount_analysis.estimation.confidence_intervals import Counts, quantile
from veilcount_analysis.estimation.raking import RakedShares
from veilcount_analysis.kinds.source import SelectedValues
from veilcount_analysis.kinds.weighting import CellReader, limits_of_weights

from .comparison_sides import Pairs, SideData, may_share_persons
from .estimate_schema import ResultValue


class ReweightedRow(Struct):
    """One value: the reweighted share of each side, and their difference a - b."""

    value: ResultValue
    a: float
    b: float
    difference: float
    low: float
    high: float


class ReweightedComparison(Struct):
    """The differences of reweighted shares, each with its interval; none where a side has none."""

    rows: list[ReweightedRow]
    notes: Annotated[list[str], Meta(description="what weights cannot see, or why there are none")]


def reweighted_comparison(
    a: SideData, b: SideData, shown: Pairs, level: float
) -> ReweightedComparison | None:
    """Return the differences of reweighted shares; None: neither definition states margins."""
    margins = [side.series.collection.margins for side in (a, b)]
    if not any(margins):
        return None
    first, second = _raked(a, shown, shown.first), _raked(b, shown, shown.second)
    problems = [
        f"Not reweighted: {side.side.label}: {shares}"
        for side, shares in ((a, first), (b, second))
        if isinstance(shares, str)
    ]
    if isinstance(first, str) or isinstance(second, str):
        return ReweightedComparison([], problems)
    names = dict.fromkeys(name for side in margins if side for name, _ in side.shares)
    notes = [limits_of_weights(" and ".join(names))]
    together = may_share_persons(a, b)
    return ReweightedComparison(_rows(first, second, shown, level, together=together), notes)


def _raked(side: SideData, shown: Pairs, places: Counts | None) -> RakedShares | str:
    reader = CellReader(side.kind, side.source, side.cells, side.covered)
    labels = tuple(value for value in shown.values if value is not None)
    selection = SelectedValues(labels) if places is None else SelectedValues(labels, places)
    return reader.raked(side.query, selection)


def _rows(
    first: RakedShares, second: RakedShares, shown: Pairs, level: float, *, together: bool
) -> list[ReweightedRow]:
    """Return the rows; where persons may be on both sides, their errors may add up."""
    points, errors = (
        np.stack(pair)
        for pair in (
            (first.points, second.points),
            (np.sqrt(first.variance), np.sqrt(second.variance)),
        )
    )
    error = errors.sum(axis=0) if together else np.sqrt((errors**2).sum(axis=0))
    half, difference = quantile(1 - level) * error, points[0] - points[1]
    columns = np.stack([*points, difference, difference - half, difference + half], axis=1)
    rows = zip(shown.values, columns.tolist(), strict=True)
    return [ReweightedRow(value, *row) for value, row in rows if value is not None]
