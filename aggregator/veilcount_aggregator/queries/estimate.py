"""An estimate: the series that a query covers, read from the store and given to the analysis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from veilcount_analysis.counts import CountersSource, estimate_counters
from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation.confidence_intervals import Counts
from veilcount_analysis.kinds.estimate import SeriesData, estimate_series, require_few_rows
from veilcount_analysis.kinds.estimate_query import MOST_ROWS, EstimateQuery
from veilcount_analysis.kinds.kind import Kind
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.kinds.scope import Scope
from veilcount_analysis.kinds.source import Searches, Tally
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.result_pages import SELECTIONS
from veilcount_shared.schedule import period_end

from ..store import Cell
from .estimate_results import UncountedReports, estimate_result, series_result
from .estimate_schema import EstimateResult
from .snapshot import Tallies


def estimate(
    snapshot: Tallies, name: str, query: EstimateQuery, *, brief: bool = False
) -> EstimateResult:
    """Return the estimates that a query asks of a collection; brief: what is followed over time."""
    counts = snapshot.store.service_counts()
    requested = requested_series(snapshot, name, query)
    if brief:
        requested = [replace(request, kind=request.kind.brief) for request in requested]
    requests = [request.loaded(query) for request in requested]
    require_few_rows(sum(data.figure_count(request.kind) for request, data in requests), query)
    series = [
        series_result(
            request.series,
            request.kind,
            estimate_series(request.kind, query, data),
            UncountedReports.from_counts(counts, request.series.fingerprint),
        )
        for request, data in requests
    ]
    return estimate_result(name, query, series)


def estimate_counts(source: CountersSource, query: EstimateQuery) -> EstimateResult:
    """Return the estimates of counters that are at hand, as a store's have them."""
    series, figures = source.series, estimate_counters(source, query)
    kind = kind_of(series.collection)
    result = series_result(series, kind, figures, UncountedReports({}))
    return estimate_result(series.collection.name, query, [result])


def estimate_table(
    snapshot: Tallies, name: str, query: EstimateQuery, parameters: Iterable[str]
) -> EstimateResult:
    """Return an estimate for a file, which has no pages: of all values, unless some are selected.

    `parameters` are the names of those that the query was given.
    """
    if not SELECTIONS.isdisjoint(parameters):
        return estimate(snapshot, name, query)
    result = estimate(snapshot, name, replace(query, size=MOST_ROWS))
    facts = [series.facts for series in result.series]
    size = max((fact["size"] for fact in facts if fact.get("pages", 1) > 1), default=0)
    if size:
        fix = f"{size:,} values, at most {MOST_ROWS:,} in a table: give size and page, or top"
        raise QueryError("size", MOST_ROWS, fix)
    return result


@dataclass(frozen=True, slots=True)
class StoreSource:
    """Where a kind reads one series of a store.

    The whole range is read once, as are the few counters of a trend by period; all time ranges of
    open strings together would be gigabytes.
    """

    snapshot: Tallies
    series: Series
    tallies: dict[tuple[range, tuple[int, ...]], Tally] = field(default_factory=dict)
    by_period: dict[tuple[range, tuple[int, ...]], Counts] = field(default_factory=dict)

    def tally(self, periods: range, cells: Sequence[int]) -> Tally:
        """Return the tally of periods and cells together."""
        key = periods, tuple(cells)
        if key in self.tallies:
            return self.tallies[key]
        query = [Cell(period, cell) for period in periods for cell in cells]
        covers = self.snapshot.covers(self.series, periods)
        tally = Tally(self.snapshot.store.counters(self.series, query), covers)
        if not self.tallies:
            self.tallies[key] = tally
        return tally

    def counters_by_period(self, periods: range, cells: Sequence[int]) -> Counts:
        """Return the counters of cells together, a row for each period."""
        key = periods, tuple(cells)
        if key not in self.by_period:
            queries = [[Cell(period, cell) for cell in cells] for period in periods]
            rows = [self.snapshot.store.counters(self.series, query) for query in queries]
            self.by_period[key] = np.stack(rows)
        return self.by_period[key]

    def is_over(self, period: int) -> bool:
        """Whether a period has ended."""
        return period_end(self.series.collection, period).date() <= self.snapshot.today

    @property
    def searches(self) -> Searches:
        """The searches among open strings, which are counted."""
        return self.snapshot.searches(self.series)


@dataclass(frozen=True, slots=True)
class RequestedSeries:
    """A series that a query covers, its kind, and the reports that are covered."""

    source: StoreSource
    kind: Kind[Any, Any]
    scope: Scope

    @classmethod
    def check(cls, snapshot: Tallies, series: Series, query: EstimateQuery) -> RequestedSeries:
        """Return what a query covers of a series, or refuse one that it cannot answer."""
        scope = Scope.from_query(series, query, snapshot.today)
        kind = kind_of(series.collection)
        kind.check(query)
        return cls(StoreSource(snapshot, series), kind, scope)

    @property
    def series(self) -> Series:
        """The series."""
        return self.source.series

    def loaded(self, query: EstimateQuery) -> tuple[RequestedSeries, SeriesData]:
        """Return it with its data."""
        return self, SeriesData.load(self.kind, self.source, query, self.scope)


def requested_series(snapshot: Tallies, name: str, query: EstimateQuery) -> list[RequestedSeries]:
    """Return the series that a query covers: those it names, or all with reports.

    A series that the range does not touch, or that has no such segment or value, is left out; if
    none is left, the refusal of the newest is raised.
    """
    refusals: list[QueryError] = []
    accepted: list[RequestedSeries] = []
    for series in snapshot.local(name, query.series):
        try:
            accepted.append(RequestedSeries.check(snapshot, series, query))
        except QueryError as error:
            refusals.append(error)
    if not accepted:
        raise refusals[0]
    answered = [request for request in accepted if snapshot.reports(request.series)]
    return accepted if query.series else answered or accepted[:1]
