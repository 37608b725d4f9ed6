"""The result of an estimate: each series with its guarantee, estimates and losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veilcount_aggregator.queries.estimate_schema import (
    EstimateResult,
    SearchResult,
    SeriesEstimate,
    TimeRangeEstimate,
)
from veilcount_aggregator.queries.snapshot import Snapshot
from veilcount_aggregator.store import Cell, ServiceCounter
from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation import View
from veilcount_analysis.estimation.confidence_intervals import Counts
from veilcount_analysis.estimation.results import ESTIMANDS
from veilcount_analysis.kinds.estimate_query import MOST_ROWS, EstimateQuery
from veilcount_analysis.mechanisms import handler_of, poisoning_test
from veilcount_analysis.mechanisms.candidate_search import open_handler
from veilcount_analysis.mechanisms.estimates import target_of
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.privacy_guarantees import epsilons, promise
from veilcount_shared import Collection
from veilcount_shared.domain import Features, Number, OpenStrings

from .candidates import (
    CandidateSearch,
    check_candidates,
    discover_strings,
    known_strings,
    search_candidates,
)
from .domain_values import groups_of, places_of
from .estimate_results import (
    Bounds,
    RangeFigures,
    UncountedReports,
    ValueSelection,
    adequacy_of,
    number_figures,
    presence_is_hidden,
    ranges_of,
    ranked,
    share_figures,
    support_probabilities,
)
from .moments import moment_rows
from .query_checks import check_query, page_of, periods_of
from .smoothing import smoothed, smoothing_problem
from .time_ranges import TimeRange, cells, time_range, time_ranges
from .trends import TrendReader, trend_figures

NUMBER_ROWS = 600  # a curve, a histogram, quantiles
ANSWERS = "answers"
REPORTS = "reports: answers, and those of devices that had none"
UNTESTED = (
    "Reports of numbers have no poisoning test: the band states how far fake reports could have"
    " moved them."
)

UNTESTED_TREND = (
    "Reports of a rise or a fall have no poisoning test: the band states how far fake reports could"
    " have moved a share."
)


def estimate(snapshot: Snapshot, name: str, query: EstimateQuery) -> EstimateResult:
    """Return the estimates that a query asks of a collection."""
    counts = snapshot.store.service_counts()
    parts = [
        SeriesPart.load(snapshot, each, query) for each in chosen_series(snapshot, name, query)
    ]
    rows = sum(part.rows for part in parts)
    if rows > MOST_ROWS:
        fix = f"{rows:,} figures, at most {MOST_ROWS:,}: ask for fewer values, days or series"
        raise QueryError("size", query.size, fix)
    return EstimateResult(
        collection=name,
        by=query.by,
        view=query.view,
        level=query.level,
        looks=query.looks,
        validity=query.looks.valid,
        among=query.among,
        fakes=float(query.fakes),
        segments=dict(query.segments),
        series=[part.result(counts) for part in parts],
    )


def chosen_series(snapshot: Snapshot, name: str, query: EstimateQuery) -> list[Series]:
    """Return the series that a query covers: those it names, or all with reports.

    A series that the range does not touch, or that has no such segment or value, is left out; if
    none is left, the refusal of the newest is raised.
    """
    series = snapshot.local(name, query.series)
    refused: list[QueryError] = []
    fit: list[Series] = []
    for each in series:
        try:
            check_query(snapshot, each, query)
            fit.append(each)
        except QueryError as error:
            refused.append(error)
    if not fit:
        raise refused[0]
    answered = [each for each in fit if snapshot.reports(each)]
    return fit if query.series else answered or fit[:1]


def counters_of(
    snapshot: Snapshot, series: Series, periods: range, segments: Sequence[int]
) -> Counts:
    """Return the counters of some periods and cells together."""
    query = [Cell(period, segment) for period in periods for segment in segments]
    return snapshot.store.counters(series, query)


@dataclass(frozen=True, slots=True, eq=False)
class SeriesPart:
    """One series of a result, with the counters that it needs."""

    snapshot: Snapshot
    series: Series
    query: EstimateQuery
    whole: TimeRange
    cut: tuple[TimeRange, ...]
    counters: Counts
    shown: ValueSelection | tuple[Bounds, ...]
    stand_out: int | None
    search: CandidateSearch | None = None
    trend: TrendReader | None = None

    @classmethod
    def load(cls, snapshot: Snapshot, series: Series, query: EstimateQuery) -> SeriesPart:
        """Read what a query needs of a series; values are selected over the whole range."""
        periods = periods_of(snapshot, series, query)
        segments = cells(series.collection, query.segments)
        counters, search = counters_of(snapshot, series, periods, segments), None
        shown: ValueSelection | tuple[Bounds, ...]
        if isinstance(series.collection.domain, OpenStrings):
            about = (periods, segments)
            shown, search = _shown_strings(snapshot, series, counters, query, about)
            stand_out = None
        else:
            shown, stand_out = _shown(series.collection, counters, query)
        return cls(
            snapshot,
            series,
            query,
            time_range(series, periods, snapshot.today),
            tuple(time_ranges(series, periods, query.by, snapshot.today)),
            counters,
            shown,
            stand_out,
            search,
            TrendReader.of(snapshot, series) if series.collection.is_trend else None,
        )

    @property
    def _shares(self) -> ValueSelection:
        assert isinstance(self.shown, ValueSelection), "of numbers none are asked for"
        return self.shown

    @property
    def collection(self) -> Collection:
        """The definition."""
        return self.series.collection

    @property
    def rows(self) -> int:
        """How many figures it will have."""
        each = len(self.shown.labels) if isinstance(self.shown, ValueSelection) else NUMBER_ROWS
        return len(self.cut) * each

    def result(self, counts: dict[ServiceCounter, int]) -> SeriesEstimate:
        """Return the result of the series."""
        collection = self.collection
        uncounted = UncountedReports.from_counts(counts, self.series.fingerprint)
        failed, finding = poisoning_finding(collection, self.counters)
        size, page, pages = self._pages()
        P, Q = support_probabilities(collection)
        return SeriesEstimate(
            fingerprint=self.series.fingerprint,
            question=collection.question,
            unit=collection.unit,
            epsilon=epsilons(collection),
            promise=promise(collection),
            counts=REPORTS if presence_is_hidden(collection) else ANSWERS,
            P=P,
            Q=Q,
            size=size,
            page=page,
            pages=pages,
            stand_out=self.stand_out,
            poisoning_test_failed=failed,
            poisoning_test=finding,
            unplaced=uncounted.unplaced(),
            losses=uncounted.losses(),
            time_ranges=self._time_ranges(uncounted),
            search=self._search_result(),
        )

    def _search_result(self) -> SearchResult | None:
        search = self.search
        if search is None:
            return None
        found = set(search.texts)
        return SearchResult(
            discovers=search.discovers,
            candidates=search.candidates,
            found=len(search.texts),
            missing=[each for each in search.named if each not in found],
            tested=search.tested,
            least_share=self._least_share(search.alpha),
        )

    def _least_share(self, alpha: float) -> float | None:
        handler = open_handler(self.collection)
        n = handler.report_count(self.counters)
        return handler.least_share(n, alpha) if n else None

    def _time_ranges(self, uncounted: UncountedReports) -> list[TimeRangeEstimate]:
        is_smooth = self.query.view is View.SMOOTH
        problem = smoothing_problem(self.collection, self.cut) if is_smooth else ""
        if problem:
            raise QueryError("view", View.SMOOTH.value, problem)
        found = [self._time_range_estimate(each, uncounted) for each in self.cut]
        return smoothed(self.collection, self.query, found) if is_smooth else found

    def _pages(self) -> tuple[int | None, int, int]:
        if isinstance(self.collection.domain, Number | OpenStrings | Features):
            return None, 1, 1
        size, query = self.collection.domain.size, self.query
        if query.top or query.values or query.groups:
            return size, 1, 1
        return size, query.page, -(-size // query.size)

    def _time_range_estimate(
        self, each: TimeRange, uncounted: UncountedReports
    ) -> TimeRangeEstimate:
        counters, contributions = self._counters(each), each.contributions(self.collection)
        wanted = (self.collection, counters, self.query)
        if self.trend:
            figures = trend_figures(self.trend, self.query, self._shares, each)
        elif isinstance(self.collection.domain, Features):
            figures = self._moments(counters, contributions)
        elif isinstance(self.shown, ValueSelection):
            figures = share_figures(*wanted, self.shown, contributions)
        else:
            figures = number_figures(*wanted, self.shown, contributions)
        adequacy = adequacy_of(self.collection, self.query, figures, contributions)
        return TimeRangeEstimate(
            first=each.first,
            last=each.last,
            first_period=each.periods[0],
            last_period=each.periods[-1],
            open_period=each.open_period,
            n=figures.n,
            usable=adequacy.usable,
            adequacy=adequacy.text,
            estimand=figures.estimand,
            contributions=contributions,
            verdicts=uncounted.verdicts(each.periods),
            values=figures.values,
            leader=figures.leader,
            absent=figures.absent,
            mean=figures.mean,
            spread=figures.spread,
            moments=list(figures.moments),
        )

    def _moments(self, counters: Counts, contributions: int) -> RangeFigures:
        target = target_of(self.collection, "auto", contributions)
        rows = moment_rows(self.collection, counters, self.query)
        return RangeFigures(int(counters.sum()), ESTIMANDS[target], [], moments=tuple(rows))

    def _counters(self, each: TimeRange) -> Counts:
        if each.periods == self.whole.periods:
            return self.counters
        segments = cells(self.collection, self.query.segments)
        return counters_of(self.snapshot, self.series, each.periods, segments)


def _shown(
    collection: Collection, counters: Counts, query: EstimateQuery
) -> tuple[ValueSelection | tuple[Bounds, ...], int | None]:
    """Return what is shown, and for a top list how many values stand out from noise."""
    if isinstance(collection.domain, Features):
        return (), None
    if isinstance(collection.domain, Number):
        return tuple(ranges_of(collection, query.values)), None
    if query.groups:
        groups = groups_of(collection, query.groups)
        return ValueSelection(tuple(groups), np.arange(len(groups)), tuple(groups.values())), None
    if query.values:
        return ValueSelection.from_places(
            collection, places_of(collection, query.values).places
        ), None
    if query.top:
        places, stand_out = ranked(collection, counters, query.top, query.view)
        return ValueSelection.from_places(collection, places), stand_out
    return ValueSelection.from_places(collection, page_of(collection, query)), None


def _shown_strings(
    snapshot: Snapshot,
    series: Series,
    counters: Counts,
    query: EstimateQuery,
    about: tuple[range, list[int]],
) -> tuple[ValueSelection, CandidateSearch]:
    """Return the strings shown: those named; of candidates those found; or those found before."""
    collection, store = series.collection, snapshot.store
    if query.discover:
        search = discover_strings(store, series, counters, query.candidates, about)
        return ValueSelection(search.texts, search.places), search
    if query.candidates:
        named = check_candidates(collection, query.candidates)
        search = search_candidates(store, series, counters, named, about)
        return ValueSelection(search.texts, search.places), search
    known, search = known_strings(store, series)
    if query.values:
        known = check_candidates(collection, query.values, "values")
    return ValueSelection(known.texts, known.places), search


def poisoning_finding(collection: Collection, counters: Counts) -> tuple[bool, str]:
    """Return whether the poisoning test failed, and its message."""
    if collection.is_trend:
        return False, UNTESTED_TREND
    if not handler_of(collection.mechanism).has_shares:
        return False, UNTESTED
    if not counters.any():
        return False, "There are no reports to test."
    found = poisoning_test(collection, counters)
    return found.failed, str(found)
