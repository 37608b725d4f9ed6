"""Two sides compared as parts of a population: their shares reweighted to its margins."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from veilcount_analysis.estimation.confidence_intervals import Counts
from veilcount_analysis.estimation.raking import RakedShares, difference_interval
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
    ends = difference_interval(first, second, 1 - level, together=together)
    points = (first.points, second.points, first.points - second.points)
    rows = zip(shown.values, np.stack([*points, *ends], axis=1).tolist(), strict=True)
    return [ReweightedRow(value, *row) for value, row in rows if value is not None]
