"""The chart over time: a line with a band for each value, or for the mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from veilcount_shared.domain import Boolean, Number

from ...estimation import View
from ...queries import EstimateQuery, EstimateResult, GroupBy, Snapshot, estimate
from ...queries.estimate_schema import MeanRow, SeriesEstimate, ShareRow, TimeRangeEstimate
from ...series.series import Series
from ...text import number_format
from ...text.result_columns import spelled
from .. import charts
from ..charts import Chart, Drawing
from ..formatting import days, level, number_interval, value_name
from .url_state import DRAWN, ParameterDict, ShownQuery, changed

Row = ShareRow | MeanRow

MIN_TIME_RANGES = 2  # of a line
TICKS = 6  # days that an axis names
FAINT = 50  # times fewer reports: a band seven times as wide would flatten all others


@dataclass(frozen=True, slots=True)
class Line:
    """One figure in each time range."""

    name: str
    rows: tuple[Row, ...]


def time_series_query(
    series: Series, shown: ShownQuery, by: GroupBy, found: SeriesEstimate
) -> ParameterDict:
    """Return the parameters of the time series: the same query by time range, for a few values.

    It has the raw view: the consistent one has a different bias in each time range.
    """
    cut = changed(shown.parameters, by=by.value, series=series.fingerprint, view=View.RAW.value)
    if isinstance(series.collection.domain, Number):
        return changed(cut, values=None)
    if "group" in cut:
        return cut
    return changed(cut, top=None, page=None, size=None, values=_followed(series, found))


def _followed(series: Series, found: SeriesEstimate) -> list[str]:
    """Return the values to follow: the largest ones; of a boolean, true."""
    if isinstance(series.collection.domain, Boolean):
        return [spelled(True)]
    rows = sorted(found.time_ranges[-1].values, key=lambda row: -(row.frequency or 0.0))
    return [spelled(row.value) for row in rows[:DRAWN]]


def time_series_chart(
    snapshot: Snapshot, name: str, parameters: ParameterDict, chart: str
) -> Chart | None:
    """Draw a query by time range; None: there are too few time ranges."""
    answer = estimate(snapshot, name, EstimateQuery.parse(parameters))
    series = answer.series[0]
    nonempty = [each for each in series.time_ranges if each.n]
    most = max((each.n for each in nonempty), default=0)
    time_ranges = [each for each in nonempty if each.n * FAINT >= most]
    if len(time_ranges) < MIN_TIME_RANGES:
        return None
    lines = _lines(time_ranges)
    of_shares = time_ranges[0].mean is None
    format_ = charts.SHARE if of_shares else {}
    title = "share of the reports" if of_shares else "mean"
    days_title = "UTC day" if answer.by is GroupBy.DAY else f"first UTC day of the {answer.by}"
    return Chart(
        chart,
        charts.lines(
            [_part(answer, time_ranges, line) for line in lines],
            charts.axis(days_title, type="date", ticks=_ticks(time_ranges)),
            charts.axis(title, **format_),
        ),
        _label(answer, series, time_ranges, of_shares=of_shares) + _left_out(nonempty, most),
        ("UTC days", "n", *(line.name for line in lines)),
        tuple(_row(each, lines, place) for place, each in enumerate(time_ranges)),
    )


def _ticks(time_ranges: Sequence[TimeRangeEstimate]) -> list[tuple[str, str]]:
    """Return the days that are labelled: of many, every nth."""
    named_days = [each.first.isoformat() for each in time_ranges[:: -(-len(time_ranges) // TICKS)]]
    return [(day, day) for day in named_days]


def _lines(time_ranges: Sequence[TimeRangeEstimate]) -> list[Line]:
    if time_ranges[0].mean is not None:
        return [Line("mean", tuple(each.mean for each in time_ranges if each.mean))]
    rows = [
        [each.values[place] for each in time_ranges] for place in range(len(time_ranges[0].values))
    ]
    lines = [Line(value_name(each[0].value), tuple(each)) for each in rows]
    lines.sort(key=lambda line: -_figure(line.rows[-1]))
    return lines[:DRAWN]


def _figure(row: Row) -> float:
    """Return a row's figure; the time ranges drawn all have one."""
    return (row.mean if isinstance(row, MeanRow) else row.frequency) or 0.0


def _part(answer: EstimateResult, time_ranges: Sequence[TimeRangeEstimate], line: Line) -> Drawing:
    rows = line.rows
    return charts.estimates(
        rows,
        _figure,
        [_hover(answer, each, line, row) for each, row in zip(time_ranges, rows, strict=True)],
        name=line.name,
        x=[each.first.isoformat() for each in time_ranges],
        open=[place for place, each in enumerate(time_ranges) if each.open_period],
    )


def _hover(answer: EstimateResult, time_range: TimeRangeEstimate, line: Line, row: Row) -> str:
    still = "; open period" if time_range.open_period else ""
    return (
        f"{line.name}, {days(time_range.first, time_range.last)}: {_between(row)} at"
        f" {level(answer.level)}, n = {time_range.n:,}{still}"
    )


def _between(row: Row) -> str:
    if isinstance(row, MeanRow):
        mean = number_format.precise(_figure(row), row.low, row.high)
        return f"{mean} ({number_interval(row.low, row.high)})"
    interval = number_format.interval(row.low, row.high, of_shares=True)
    return f"{number_format.share(_figure(row))} ({interval})"


def _row(time_range: TimeRangeEstimate, lines: Sequence[Line], place: int) -> tuple[str, ...]:
    still = " (open)" if time_range.open_period else ""
    figures = [_between(line.rows[place]) for line in lines]
    return (f"{days(time_range.first, time_range.last)}{still}", f"{time_range.n:,}", *figures)


def _label(
    answer: EstimateResult,
    series: SeriesEstimate,
    time_ranges: Sequence[TimeRangeEstimate],
    *,
    of_shares: bool,
) -> str:
    what = "Shares" if of_shares else "The mean"
    raw = ", raw" if of_shares else ""
    hollow = " Hollow points are open periods." if any(s.open_period for s in time_ranges) else ""
    together = "simultaneous over all values" if answer.simultaneous else "individual"
    return (
        f"{what} by {answer.by}{raw}: UTC days {days(time_ranges[0].first, time_ranges[-1].last)},"
        f" n = {sum(each.n for each in time_ranges):,} {_counted(series)}. Bands at"
        f" {level(answer.level)}, {together if of_shares else 'individual'},"
        f" {answer.validity}.{hollow}"
    )


def _left_out(nonempty: Sequence[TimeRangeEstimate], most: int) -> str:
    """Return the time ranges that are left out because they have very few reports."""
    left_out = [
        f"{days(each.first, each.last)} (n = {each.n:,})"
        for each in nonempty
        if each.n * FAINT < most
    ]
    return f" Not drawn, too few reports: {', '.join(left_out)}." if left_out else ""


def _counted(series: SeriesEstimate) -> str:
    return "answers" if series.counts == "answers" else "reports"
