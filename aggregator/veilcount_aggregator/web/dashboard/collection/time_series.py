"""Small multiples over time: a line with its band for each of a few values, or for the mean.

All have the same number of points (or units) from bottom to top, so that slopes can be compared;
each has its own level, so that bands do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from veilcount_analysis.estimation import View
from veilcount_analysis.series.series import Series
from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import level
from veilcount_analysis.text.result_columns import spelled, value_name
from veilcount_analysis.text.utc_days import day, days
from veilcount_shared.domain import Boolean, Features, Number

from ....queries import EstimateQuery, EstimateResult, GroupBy, Snapshot, estimate
from ....queries.estimate_schema import MeanRow, SeriesEstimate, ShareRow, TimeRangeEstimate
from ..charts import SMALL, Axis, Chart, LinePlot, Lines, Part
from ..formatting import number_interval, short_number, short_percent
from .url_state import DRAWN, ParameterDict, ShownQuery, changed

Row = ShareRow | MeanRow

MIN_TIME_RANGES = 2  # of a line
FAINT = 50  # times fewer reports: a band seven times as wide would flatten all others
NAMED = 3  # time ranges that are not drawn
HEADROOM = 1.1  # of the tallest band


@dataclass(frozen=True, slots=True)
class Line:
    """One figure in each time range."""

    name: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class TimeSeries:
    """The multiples, what is not drawn, and all of it as a table."""

    plots: Sequence[LinePlot]
    note: str
    table: Chart


def time_series_query(
    series: Series, shown: ShownQuery, by: GroupBy, found: SeriesEstimate, view: View
) -> ParameterDict:
    """Return the parameters of the time series: the same query by time range, for a few values.

    Its view is raw or smooth: the consistent one has a different bias in each time range.
    """
    cut = changed(shown.parameters, by=by.value, series=series.fingerprint, view=view.value)
    if isinstance(series.collection.domain, Number | Features):
        return changed(cut, values=None)
    if "group" in cut:
        return cut
    unlisted = dict.fromkeys(("top", "page", "size", "candidates", "discover"))
    return changed(cut, **unlisted, values=_followed(series, found))


def _followed(series: Series, found: SeriesEstimate) -> list[str]:
    """Return the values to follow: the largest ones; of a boolean, true."""
    if isinstance(series.collection.domain, Boolean):
        return [spelled(True)]
    rows = sorted(found.time_ranges[-1].values, key=lambda row: -(row.frequency or 0.0))
    return [spelled(row.value) for row in rows[:DRAWN]]


def time_series(
    snapshot: Snapshot, name: str, parameters: ParameterDict, size: int | None
) -> TimeSeries | None:
    """Draw a query by time range, of `size` values; None: there are too few time ranges."""
    answer = estimate(snapshot, name, EstimateQuery.parse(parameters))
    series = answer.series[0]
    nonempty = [each for each in series.time_ranges if each.n]
    most = max((each.n for each in nonempty), default=0)
    drawn = [each for each in nonempty if each.n * FAINT >= most]
    if len(drawn) < MIN_TIME_RANGES or not (drawn[0].values or drawn[0].mean):
        return None
    lines = _lines(drawn)
    faint = [each for each in nonempty if each not in drawn]
    empty = [each for each in series.time_ranges if not each.n]
    return TimeSeries(
        _plots(drawn, lines),
        " ".join(_notes(answer, drawn, faint, empty, (len(lines), size))),
        Chart(
            f"time-{series.fingerprint[:8]}",
            None,
            f"By {answer.by}",
            ("UTC days", "Reports", *(line.name for line in lines)),
            [_row(each, lines, place) for place, each in enumerate(drawn)],
        ),
    )


def _lines(time_ranges: Sequence[TimeRangeEstimate]) -> list[Line]:
    if time_ranges[0].mean is not None:
        return [Line("Mean", tuple(each.mean for each in time_ranges if each.mean))]
    rows = [
        [each.values[place] for each in time_ranges] for place in range(len(time_ranges[0].values))
    ]
    lines = [Line(value_name(each[0].value), tuple(each)) for each in rows]
    if len(lines) > DRAWN:  # groups; of values, the largest were chosen
        lines = sorted(lines, key=lambda line: -_figure(line.rows[-1]))
    return lines[:DRAWN]


def _figure(row: Row) -> float:
    """Return a row's figure; the time ranges drawn all have one."""
    return (row.mean if isinstance(row, MeanRow) else row.frequency) or 0.0


def _plots(time_ranges: Sequence[TimeRangeEstimate], lines: Sequence[Line]) -> list[LinePlot]:
    ends = [(min(r.low for r in line.rows), max(r.high for r in line.rows)) for line in lines]
    height = HEADROOM * max(high - low for low, high in ends)
    return [
        _plot(time_ranges, line, _around(low, high, height))
        for line, (low, high) in zip(lines, ends, strict=True)
    ]


def _around(low: float, high: float, height: float) -> tuple[float, float]:
    """Return the ends of an axis of a height around an interval; above 0 where the interval is."""
    bottom = (low + high - height) / 2
    bottom = max(bottom, 0.0) if low >= 0 else bottom
    return bottom, bottom + height


def _plot(
    time_ranges: Sequence[TimeRangeEstimate], line: Line, ends: tuple[float, float]
) -> LinePlot:
    texts = [
        f"{day(each.first)}: {_between(row)}"
        for each, row in zip(time_ranges, line.rows, strict=True)
    ]
    x = tuple(float(each.first.toordinal()) for each in time_ranges)
    part = Part(
        x=x,
        values=tuple(map(_figure, line.rows)),
        low=tuple(row.low for row in line.rows),
        high=tuple(row.high for row in line.rows),
        texts=tuple(texts),
        open=tuple(each.open_period for each in time_ranges),
        dots=True,
    )
    first, last = (
        (at, day(each.first)) for at, each in ((x[0], time_ranges[0]), (x[-1], time_ranges[-1]))
    )
    shares = isinstance(line.rows[0], ShareRow)
    return LinePlot(
        line.name,
        f"{texts[-1]}; {texts[0]}",
        Lines(
            (part,),
            Axis(ends=(x[0], x[-1]), ticks=(first, last)),
            Axis(write=short_percent if shares else short_number, ends=ends),
            height=SMALL,
        ),
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


def _notes(
    answer: EstimateResult,
    drawn: Sequence[TimeRangeEstimate],
    faint: Sequence[TimeRangeEstimate],
    empty: Sequence[TimeRangeEstimate],
    values: tuple[int, int | None],
) -> Iterator[str]:
    """Yield what the bands are, and everything that is not drawn."""
    yield (
        f"By {answer.by}, {days(drawn[0].first, drawn[-1].last)}. Bands are the"
        f" {level(answer.level)} intervals of each value on its own, {answer.validity}."
    )
    if answer.view is View.SMOOTH:
        yield "Smoothed: each figure also uses the reports of the times around it."
    number, size = values
    if size is not None and size > number > 1:
        yield f"The {number} largest of {size:,} values."
    if any(each.open_period for each in drawn):
        yield "Hollow points are open periods."
    if faint:
        named = [f"{days(each.first, each.last)} (n = {each.n:,})" for each in faint[:NAMED]]
        more = f" and {len(faint) - NAMED} more" if len(faint) > NAMED else ""
        yield f"Not drawn, too few reports: {', '.join(named)}{more}."
    if empty:
        named = [days(each.first, each.last) for each in empty[:NAMED]]
        more = f" and {len(empty) - NAMED} more" if len(empty) > NAMED else ""
        yield f"Without reports: {', '.join(named)}{more}."
