"""One series, from its tallies to figures: the one entrance into the analysis.

A server passes a `Source` that reads its store, a notebook one with arrays of its own. Time ranges
are read one after another: the counters of all of them at once may be gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import QueryError
from ..estimation import LookCount, View
from ..mechanisms.estimates import COVERS_HOLD_ONCE
from .estimate_query import MOST_ROWS, Denominator, EstimateQuery
from .kind import Kind
from .results import Figure, RangeEstimate
from .sample_adequacy import SampleAdequacy, Terms, observed_adequacy, sample_adequacy
from .scope import Scope
from .smoothing import BANDS, smooth_figures, smoothing_problem
from .source import SelectedValues, Source, Tally
from .weighting import CellReader, reweighted


@dataclass(frozen=True, slots=True, eq=False)
class SeriesData:
    """What was read of a series before its time ranges: its tally, and the selected values."""

    source: Source
    scope: Scope
    whole: Tally
    selection: SelectedValues

    @classmethod
    def load(
        cls, kind: Kind[Any, Any], source: Source, query: EstimateQuery, scope: Scope
    ) -> SeriesData:
        """Read the whole range, and select values by it; a search of strings is counted."""
        whole = source.tally(scope.whole.periods, scope.cells)
        refuse_covers(query, whole)  # before a search is counted
        return cls(source, scope, whole, kind.load(source, query, scope, whole))

    def figure_count(self, kind: Kind[Any, Any]) -> int:
        """Return how many figures it will have."""
        views = 1 if kind.collection.margins is None else 2  # raw, and reweighted
        return len(self.scope.ranges) * (kind.rows or views * len(self.selection.labels))


@dataclass(frozen=True, slots=True)
class SeriesFigures:
    """The figures of one series; `facts` are its kind's own, `notes` sentences on them."""

    facts: Mapping[str, Any]
    notes: tuple[str, ...]
    poisoning_test_failed: bool
    poisoning_test: str
    ranges: tuple[RangeEstimate, ...]


def require_few_rows(rows: int, query: EstimateQuery) -> None:
    """Refuse more figures than one result may have."""
    if rows > MOST_ROWS:
        fix = f"{rows:,} figures, at most {MOST_ROWS:,}: ask for fewer values, days or series"
        raise QueryError("size", query.size, fix)


def estimate_series(kind: Kind[Any, Any], query: EstimateQuery, data: SeriesData) -> SeriesFigures:
    """Return the figures of one series."""
    failed, message = kind.poisoning(data.whole)
    is_smooth = query.view is View.SMOOTH
    problem = smoothing_problem(kind, data.scope.ranges) if is_smooth else ""
    if problem:
        raise QueryError("view", View.SMOOTH.value, problem)
    ranges = tuple(_ranges(kind, query, data))
    facts = data.selection.facts
    notes = (*kind.notes(facts), *cover_notes(data.whole))
    if is_smooth:
        ranges, notes = tuple(smooth_figures(kind, query, ranges)), (*notes, BANDS)
    return SeriesFigures(facts, notes, failed, message, ranges)


def cover_notes(whole: Tally) -> Iterator[str]:
    """Yield a note on n where a shuffler's covers are among the reports."""
    if whole.covers:
        yield f"n is exact: {whole.covers:,} cover reports were subtracted"


def refuse_covers(query: EstimateQuery, whole: Tally) -> None:
    """Refuse intervals for every look: a batch comes at once, and with it all of its covers."""
    if whole.covers and query.looks is LookCount.EVERY:
        raise QueryError("looks", query.looks.value, COVERS_HOLD_ONCE)


def _ranges(
    kind: Kind[Any, Any], query: EstimateQuery, data: SeriesData
) -> Iterator[RangeEstimate]:
    for time_range in data.scope.ranges:
        contributions = time_range.contributions(kind.collection)
        counted = kind.read(data.source, data.scope, time_range)
        raw = kind.figures(counted, query, data.selection, time_range)
        reader = CellReader(kind, data.source, data.scope.cells, time_range)
        result = reweighted(reader, query, data.selection, raw)
        covers = counted.covers if isinstance(counted, Tally) else 0
        width = widest(result.figures)
        adequacy = judge(kind, query, result.n, width, contributions, covers=covers)
        yield RangeEstimate(time_range, contributions, adequacy, result, covers)


def widest(figures: Iterable[Figure]) -> float:
    """Return the width of the mean's interval, else that of the widest share's."""
    widths: dict[str, float] = {}
    for figure in figures:
        widths[figure.kind] = max(figure.width, widths.get(figure.kind, 0.0))
    return widths.get("mean", widths.get("share", 0.0))


def judge(
    kind: Kind[Any, Any],
    query: EstimateQuery,
    n: int,
    width: float,
    contributions: int,
    *,
    covers: int = 0,
) -> SampleAdequacy:
    """Judge n reports among covers; of a part of them, by the width of their own intervals."""
    terms = Terms(query.level, contributions == 1)
    is_whole = query.among is Denominator.ALL and query.looks is LookCount.ONE
    if not n or (is_whole and not kind.measures_width):
        return sample_adequacy(kind.error_among(max(n, 1), covers), n, terms)
    return observed_adequacy(kind.error_model, n, width / 2, terms)
