"""Whether a query fits a series: what its values cannot answer is refused, with the fix."""

from __future__ import annotations

import numpy as np

from veilcount_aggregator.queries.snapshot import Snapshot
from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation import LookCount, View
from veilcount_analysis.estimation.confidence_intervals import Counts
from veilcount_analysis.kinds.estimate_query import Denominator, EstimateQuery
from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.series.series import Series
from veilcount_shared import Collection
from veilcount_shared.domain import Features, Number, OpenStrings

from .candidates import check_listed, check_search
from .domain_values import groups_of, no_value, places_of
from .estimate_results import presence_is_hidden, ranges_of
from .moments import check_moments
from .time_ranges import cells, covered, time_ranges
from .trends import check_trend

ONE_LOOK = (
    "the bands of a distribution or of ranges hold at one planned look: looks=one, or a collection"
    ' with measure = "mean"'
)


ONE_LOOK_OF_TREND = "the intervals of a trend hold at one planned look: looks=one"


def check_query(snapshot: Snapshot, series: Series, query: EstimateQuery) -> None:
    """Refuse a query that a series cannot answer."""
    collection = series.collection
    time_ranges(series, periods_of(snapshot, series, query), query.by, snapshot.today)
    cells(collection, query.segments)
    if query.among is Denominator.ANSWERED and not presence_is_hidden(collection):
        raise QueryError("among", "answered", "presence is public, so all of them answered: all")
    if collection.is_trend:
        _check_one_figure(query, "a trend has", ONE_LOOK_OF_TREND)
        check_trend(query)
    _check_values(collection, query)


def _check_values(collection: Collection, query: EstimateQuery) -> None:
    """Refuse values, ways and views that the domain does not have."""
    if isinstance(collection.domain, OpenStrings):
        _check_open(query)
        check_search(collection.domain, query.candidates, discover=query.discover)
    elif query.candidates or query.discover:
        check_listed(query.candidates)
    elif isinstance(collection.domain, Features):
        _check_one_figure(query, "features have", ONE_LOOK)
        check_moments(collection, query)
    elif isinstance(collection.domain, Number):
        _check_number(collection, query)
    elif query.groups:
        groups_of(collection, query.groups)
    elif query.values:
        found = places_of(collection, query.values)
        if not len(found.places):
            raise no_value(collection, found.unknown[0])
    elif not query.top:
        page_of(collection, query)


def _check_number(collection: Collection, query: EstimateQuery) -> None:
    ways: dict[str, object] = {"top": query.top, "group": list(query.groups)}
    for name, value in ways.items():
        if value:
            raise QueryError(name, value, "this collection is of a number: remove it")
    anytime = handler_of(collection.mechanism).has_anytime_intervals
    _check_one_figure(query, "a number has", "" if anytime else ONE_LOOK)
    ranges_of(collection, query.values)


def _check_one_figure(query: EstimateQuery, what: str, one_look: str) -> None:
    if query.view is View.CONSISTENT:
        raise QueryError("view", str(query.view), f"{what} the raw view alone: view=raw")
    if query.page > 1:
        raise QueryError("page", query.page, f"{what} one page")
    if query.looks is LookCount.EVERY and one_look:
        raise QueryError("looks", str(query.looks), one_look)


def _check_open(query: EstimateQuery) -> None:
    ways: dict[str, object] = {"top": query.top, "group": list(query.groups)}
    for name, value in ways.items():
        if value:
            raise QueryError(name, value, "open strings are not listed: give candidates or values")
    if query.view is View.CONSISTENT:
        fix = "the shares of open strings that were found do not sum to 100 %: view=raw"
        raise QueryError("view", str(query.view), fix)
    if query.page > 1:
        raise QueryError("page", query.page, "open strings have one page")
    if query.looks is LookCount.EVERY:
        fix = "open strings have intervals for one planned look: looks=one"
        raise QueryError("looks", str(query.looks), fix)


def periods_of(snapshot: Snapshot, series: Series, query: EstimateQuery) -> range:
    """Return the periods that a query covers, or refuse a range outside the campaign."""
    found = covered(series, query.first, query.last, snapshot.today)
    if found is None:
        collection = series.collection
        outside = query.first is not None and query.first >= collection.until
        name, day = ("from", query.first) if outside else ("to", query.last)
        raise QueryError(
            name, day, f"the campaign is {collection.start} until before {collection.until}"
        )
    return found


def page_of(collection: Collection, query: EstimateQuery) -> Counts:
    """Return the places of a page, or refuse one that is beyond the last."""
    size = collection.domain.size
    begin = (query.page - 1) * query.size
    if begin >= size:
        raise QueryError("page", query.page, f"the last page is {-(-size // query.size)}")
    return np.arange(begin, min(begin + query.size, size))
