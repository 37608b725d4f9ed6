"""What a query covers: cells of segments, and days as whole periods, in time ranges.

A range of days is widened to the periods that it touches, and results state what is covered.
Estimates of a period that is still open will change.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby

from veilcount_shared import Collection, periods
from veilcount_shared.periods import Unit
from veilcount_shared.schedule import period_end, period_start

from ..errors import QueryError
from ..series.series import Series
from ..text.result_columns import spelled
from .estimate_query import GroupBy, Segments


def cells(collection: Collection, query: Segments) -> list[int]:
    """Return the cells in which the given segments have the given values, or refuse."""
    declared = dict(collection.segments)
    for name, value in query:
        if name not in declared:
            raise QueryError("segment", f"{name}:{value}", _declared(collection))
        if value not in map(spelled, declared[name]):
            known = ", ".join(f"{name}:{spelled(label)}" for label in declared[name])
            raise QueryError("segment", f"{name}:{value}", f"give one of {known}")
    wanted = dict(query)
    cell_numbers = [0]
    for name, labels in collection.segments:  # the first segment is the highest digit
        fit = [
            place
            for place, label in enumerate(labels)
            if name not in wanted or spelled(label) == wanted[name]
        ]
        cell_numbers = [head * len(labels) + place for head in cell_numbers for place in fit]
    return cell_numbers


def _declared(collection: Collection) -> str:
    names = ", ".join(name for name, _ in collection.segments)
    return f"its segments are {names}" if names else "it has no segments: remove it"


ONE_DAY = timedelta(days=1)

#: a time range is never shorter than a period
WIDER = {
    Unit.EVENT: (GroupBy.DAY, GroupBy.WEEK, GroupBy.MONTH, GroupBy.ALL),
    Unit.DAY: (GroupBy.DAY, GroupBy.WEEK, GroupBy.MONTH, GroupBy.ALL),
    Unit.WEEK: (GroupBy.WEEK, GroupBy.MONTH, GroupBy.ALL),
    Unit.MONTH: (GroupBy.MONTH, GroupBy.ALL),
    Unit.USER: (GroupBy.ALL,),
}


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Periods that are estimated together, with their first and last day."""

    periods: range
    first: date
    last: date
    open_period: bool

    def contributions(self, collection: Collection) -> int:
        """Return the largest number of reports that one person may have sent.

        A trend counts persons, not reports.
        """
        if collection.is_trend:
            return 1
        return min(len(self.periods), collection.answering) * collection.per_day


def covered(series: Series, first: date | None, last: date | None, today: date) -> range | None:
    """Return the periods that a range of days touches and that have begun; None: it touches none.

    Of a range in the future its first period is left, which is empty.
    """
    collection = series.collection
    begin = max(first or collection.start, collection.start)
    end = min(last or date.max, collection.until - ONE_DAY)
    if begin > end:
        return None
    low, high = (
        periods.period_number(collection.unit, collection.start, day) for day in (begin, end)
    )
    _, newest = series.open_periods(today)
    return range(low, max(low, min(high, newest)) + 1)


def time_ranges(series: Series, among: range, by: GroupBy, today: date) -> list[TimeRange]:
    """Return periods grouped into time ranges, the oldest first; a week counts where it begins."""
    collection = series.collection
    if by not in WIDER[collection.unit]:
        raise QueryError(
            "by",
            str(by),
            f"a period of this collection is {_a(collection.unit)}: give "
            + " or ".join(WIDER[collection.unit]),
        )
    if by is GroupBy.ALL:
        return [time_range(series, among, today)]
    unit = Unit(by)
    cut = groupby(
        among,
        lambda period: periods.period_number(unit, collection.start, _first(collection, period)),
    )
    runs = [list(run) for _, run in cut]
    return [time_range(series, range(run[0], run[-1] + 1), today) for run in runs]


def time_range(series: Series, together: range, today: date) -> TimeRange:
    """Return periods as one time range."""
    oldest, newest = series.open_periods(today)
    open_period = not series.closed and max(together[0], oldest) <= min(together[-1], newest)
    return TimeRange(
        together,
        _first(series.collection, together[0]),
        period_end(series.collection, together[-1]).date() - ONE_DAY,
        open_period,
    )


def _first(collection: Collection, period: int) -> date:
    return period_start(collection, period).date()


def _a(unit: Unit) -> str:
    return "the whole campaign" if unit is Unit.USER else f"a {unit}"
