"""Which reports a query covers: whole periods as time ranges, and cells of segments."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from ..errors import QueryError
from ..series.series import Series
from .estimate_query import Denominator, EstimateQuery
from .time_ranges import TimeRange, cells, covered, time_range, time_ranges


@dataclass(frozen=True, slots=True)
class Scope:
    """The reports of one series that a query covers."""

    whole: TimeRange
    ranges: tuple[TimeRange, ...]
    cells: tuple[int, ...]

    @classmethod
    def from_query(cls, series: Series, query: EstimateQuery, today: date) -> Scope:
        """Return what a query covers, or refuse one that the schedule or segments do not have."""
        periods = periods_of(series, query, today)
        ranges = time_ranges(series, periods, query.by, today)
        selected = cells(series.collection, query.segments)
        if query.among is Denominator.ANSWERED and not series.collection.has_absent:
            fix = "presence is public, so all of them answered: all"
            raise QueryError("among", "answered", fix)
        return cls(time_range(series, periods, today), tuple(ranges), tuple(selected))


def periods_of(series: Series, query: EstimateQuery, today: date) -> range:
    """Return the periods that a query covers, or refuse a range outside the campaign."""
    periods = covered(series, query.first, query.last, today)
    if periods is None:
        collection = series.collection
        is_after = query.first is not None and query.first >= collection.until
        name, day = ("from", query.first) if is_after else ("to", query.last)
        raise QueryError(
            name, day, f"the campaign is {collection.start} until before {collection.until}"
        )
    return periods
