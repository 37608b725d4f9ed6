"""Figures reweighted to the margins of a population: each next to the raw one, which stays.

What cannot be reweighted is no refusal of the query: the result says why not, and has raw figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.definition_record import PopulationMargins
from veilcount_shared.domain import Label

from ..estimation import LookCount, View, poisoning_band
from ..estimation.confidence_intervals import Counts
from ..estimation.raking import Margins, RakedShares
from ..text.result_columns import spelled
from .estimate_query import EstimateQuery
from .kind import Kind
from .results import Figure, RangeFigures, Weighting
from .source import SelectedValues, Source
from .time_ranges import TimeRange

LEAST = 30  # reports of a category
LARGE_EFFECT = 2.0
LARGE_WEIGHT = 5.0


@dataclass(frozen=True, slots=True)
class CellReader:
    """Reads the tallies of a time range by cell."""

    kind: Kind[Any, Any]
    source: Source
    cells: tuple[int, ...]
    time_range: TimeRange

    def raked(self, query: EstimateQuery, selection: SelectedValues) -> RakedShares | str:
        """Return the reweighted shares of the shown values, or why there are none."""
        collection = self.kind.collection
        margins = collection.margins
        if margins is None:
            return "the definition states no margins"
        if problem := _unweighted(margins, query):
            return problem
        design, groups = _design(collection, margins, self.cells)
        tallies = (self.source.tally(self.time_range.periods, cells) for cells in groups)
        cells = self.kind.cell_supports(tallies, selection)
        if problem := _scarce(collection, design, cells.n):
            return problem
        shares = RakedShares(cells, design, self.time_range.contributions(collection))
        if shares.meets_margins:
            return shares
        return (
            f"no weights meet all margins: some combinations of {_names(margins)} have no reports"
        )


def reweighted(
    reader: CellReader, query: EstimateQuery, selection: SelectedValues, raw: RangeFigures
) -> RangeFigures:
    """Return the figures of a time range with those that are reweighted, if margins are stated."""
    margins = reader.kind.collection.margins
    if margins is None:
        return raw
    shares = reader.raked(query, selection)
    if isinstance(shares, str):
        return replace(raw, weighting=_not_reweighted(margins, shares))
    rows = tuple(_rows(shares, query, selection))
    return replace(raw, figures=(*raw.figures, *rows), weighting=_weighting(margins, shares))


def _unweighted(margins: PopulationMargins, query: EstimateQuery) -> str:
    """Return why a query has raw figures alone."""
    for name, value in query.segments:
        if name in dict(margins.shares):
            return f"the query selects {name} {value} alone"
    if query.view is not View.RAW or query.looks is not LookCount.ONE or query.groups:
        return "only single values, in the raw view and at one planned look, are reweighted"
    return ""


def _design(
    collection: Collection, margins: PopulationMargins, cells: tuple[int, ...]
) -> tuple[Margins, list[list[int]]]:
    """Return the margins of the combinations of categories, and the cells of each of these."""
    names = [name for name, _ in collection.segments]
    sizes = tuple(len(labels) for _, labels in collection.segments)
    shares = margins.normalized
    digits = np.stack(np.unravel_index(np.array(cells), sizes), axis=1)
    digits = digits[:, [names.index(name) for name in shares]]
    combinations, places = np.unique(digits, axis=0, return_inverse=True)
    groups: list[list[int]] = [[] for _ in combinations]
    for cell, place in zip(cells, places.ravel().tolist(), strict=True):
        groups[place].append(cell)
    return Margins(
        combinations, tuple(np.array(row, np.float64) for row in shares.values())
    ), groups


def _scarce(collection: Collection, design: Margins, n: Counts) -> str:
    """Return which categories have too few reports to stand for theirs."""
    margins, segments = collection.margins, dict(collection.segments)
    assert margins is not None  # noqa: S101 - narrows the type
    scarce = [
        _category(name, label, int(reports))
        for (name, _), indicator in zip(margins.shares, design.indicators, strict=True)
        for label, reports in zip(segments[name], n @ indicator, strict=True)
        if reports < LEAST
    ]
    fix = f"{LEAST} are needed: merge it with another category"
    return f"{'; '.join(scarce)}; {fix}" if scarce else ""


def _category(name: str, label: Label, reports: int) -> str:
    return f"{name} {spelled(label)} has {reports} report{'' if reports == 1 else 's'}"


def _rows(shares: RakedShares, query: EstimateQuery, selection: SelectedValues) -> Iterator[Figure]:
    band, ends = poisoning_band(shares, query.fakes), shares.interval(1 - query.level)
    columns = np.stack([shares.points, *ends, band.low, band.high], axis=1).tolist()
    for label, row in zip(selection.labels, columns, strict=True):
        yield Figure("raked", label, *row)


# -- what is stated of the weights -----------------------------------------------------------------


def _weighting(margins: PopulationMargins, shares: RakedShares) -> Weighting:
    effect, largest = shares.design_effect, shares.largest_weight
    return Weighting(
        method="raked",
        segments=tuple(name for name, _ in margins.shares),
        source=margins.source,
        as_of=margins.as_of,
        estimand=f"of a population with these margins ({margins.source}, {margins.as_of})",
        design_effect=effect,
        largest_weight=largest,
        notes=(*_warnings(shares.n, effect, largest), limits_of_weights(_names(margins))),
    )


def _warnings(n: int, effect: float, largest: float) -> Iterator[str]:
    if effect > LARGE_EFFECT:
        yield (
            f"The weights cost precision: {n:,} reports say as much as {n / effect:,.0f} that are"
            " like the population"
        )
    if largest > LARGE_WEIGHT:
        yield f"The figures rest on few: one report counts as much as {largest:.1f}"


def limits_of_weights(names: str) -> str:
    """Return the warnings: no weights repair these."""
    return (
        f"Weights repair what {names} explain. They cannot see consent that depends on the answer"
        " itself: simulated with half as much again among those who say yes, the bias fell from"
        " 22 points to 8, and no interval held the truth"
    )


def _not_reweighted(margins: PopulationMargins, problem: str) -> Weighting:
    names = tuple(name for name, _ in margins.shares)
    note = f"Not reweighted: {problem}"
    return Weighting("none", names, margins.source, margins.as_of, notes=(note,))


def _names(margins: PopulationMargins) -> str:
    return " and ".join(name for name, _ in margins.shares)
