"""Small multiples over time: a line with its band for each of a few values, or for the mean.

All have the same number of points (or units) from bottom to top, so that slopes can be compared;
each has its own level, so that bands do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from veilcount_analysis.estimation import View
from veilcount_analysis.kinds.headline import largest_first
from veilcount_analysis.kinds.panels import Panel
from veilcount_analysis.kinds.registry import KINDS_BY_NAME, kind_of
from veilcount_analysis.kinds.results import Figure
from veilcount_analysis.kinds.smoothing import BANDS
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.number_format import level
from veilcount_analysis.text.result_columns import spelled, value_name
from veilcount_analysis.text.utc_days import day, days

from ....queries import EstimateQuery, EstimateResult, GroupBy, Tallies, estimate
from ....queries.estimate_schema import RangeResult, SeriesResult
from ..charts import SMALL, Axis, Chart, LinePlot, Lines, Part
from ..formatting import short_number, short_percent
from .url_state import DRAWN, ParameterDict, ShownQuery, changed

MIN_TIME_RANGES = 2  # of a line
FAINT = 50  # times fewer reports: a band seven times as wide would flatten all others
NAMED = 3  # time ranges that are not drawn
HEADROOM = 1.1  # of the tallest band


@dataclass(frozen=True, slots=True)
class Line:
    """One figure in each time range."""

    name: str
    panel: Panel
    rows: tuple[Figure, ...]

    def text(self, place: int) -> str:
        """Return the figure of a time range with its interval."""
        row = self.rows[place]
        return f"{self.panel.figure_text(row)} ({self.panel.interval_text(row)})"


@dataclass(frozen=True, slots=True)
class TimeSeries:
    """The multiples, what is not drawn, and all of it as a table."""

    plots: Sequence[LinePlot]
    note: str
    table: Chart


def time_series_query(
    series: Series, shown: ShownQuery, by: GroupBy, estimated: SeriesResult, view: View
) -> ParameterDict:
    """Return the parameters of the time series: the same query by time range, for a few values.

    Its view is raw or smooth: the consistent one has a different bias in each time range.
    """
    cut = changed(shown.parameters, by=by.value, series=series.fingerprint, view=view.value)
    if kind_of(series.collection).followed != "share":
        return changed(cut, values=None)
    if "group" in cut:
        return cut
    unlisted = dict.fromkeys(("top", "page", "size", "candidates", "discover"))
    return changed(cut, **unlisted, values=_followed(estimated))


def _followed(estimated: SeriesResult) -> list[str]:
    """Return the values to follow: the largest ones; of true and false, true."""
    shares = largest_first(estimated.ranges[-1].figures)
    if any(isinstance(row.of, bool) for row in shares):
        return [spelled(True)]
    return [spelled(row.of) for row in shares[:DRAWN]]


def time_series(
    snapshot: Tallies, name: str, parameters: ParameterDict, size: int | None
) -> TimeSeries | None:
    """Draw a query by time range, of `size` values; None: there are too few time ranges."""
    answer = estimate(snapshot, name, EstimateQuery.parse(parameters), brief=True)
    series = answer.series[0]
    nonempty = [time_range for time_range in series.ranges if time_range.n]
    most = max((time_range.n for time_range in nonempty), default=0)
    drawn = [time_range for time_range in nonempty if time_range.n * FAINT >= most]
    lines = _lines(series.kind, drawn)
    if len(drawn) < MIN_TIME_RANGES or not lines:
        return None
    faint = [time_range for time_range in nonempty if time_range not in drawn]
    empty = [time_range for time_range in series.ranges if not time_range.n]
    return TimeSeries(
        _plots(drawn, lines, series.measured_in or ""),
        " ".join(_notes(answer, drawn, faint, empty, (len(lines), size))),
        Chart(
            f"time-{series.fingerprint[:8]}",
            None,
            f"By {answer.by}",
            ("UTC days", "Reports", *(line.name for line in lines)),
            [_row(time_range, lines, place) for place, time_range in enumerate(drawn)],
        ),
    )


def _lines(name: str, time_ranges: Sequence[RangeResult]) -> list[Line]:
    kind = KINDS_BY_NAME[name]
    panels = [panel for panel in kind.panels if kind.followed in panel.figures]
    rows = (
        [row for row in time_range.figures if row.kind == kind.followed]
        for time_range in time_ranges
    )
    lines = [
        Line(panels[0].label(figures[0], value_name), panels[0], figures)
        for figures in zip(*rows, strict=True)
    ]
    if len(lines) > DRAWN:  # groups; of values, the largest were chosen
        lines = sorted(lines, key=lambda line: -(line.rows[-1].figure or 0.0))
    return lines[:DRAWN]


def _plots(time_ranges: Sequence[RangeResult], lines: Sequence[Line], unit: str) -> list[LinePlot]:
    intervals = [[row.interval for row in line.rows] for line in lines]
    ends = [(min(rows)[0], max(high for _, high in rows)) for rows in intervals]
    height = HEADROOM * max(high - low for low, high in ends)
    return [
        _plot(time_ranges, line, _around(low, high, height), unit)
        for line, (low, high) in zip(lines, ends, strict=True)
    ]


def _around(low: float, high: float, height: float) -> tuple[float, float]:
    """Return the ends of an axis of a height around an interval; above 0 where the interval is."""
    bottom = (low + high - height) / 2
    bottom = max(bottom, 0.0) if low >= 0 else bottom
    return bottom, bottom + height


def _plot(
    time_ranges: Sequence[RangeResult], line: Line, ends: tuple[float, float], unit: str
) -> LinePlot:
    texts = [
        f"{day(time_range.first)}: {line.text(place)}"
        for place, time_range in enumerate(time_ranges)
    ]
    x = tuple(float(time_range.first.toordinal()) for time_range in time_ranges)
    part = Part(
        x=x,
        values=tuple(row.figure for row in line.rows),
        low=tuple(row.interval[0] for row in line.rows),
        high=tuple(row.interval[1] for row in line.rows),
        texts=tuple(texts),
        open=tuple(time_range.open_period for time_range in time_ranges),
        dots=True,
    )
    first, last = ((x[end], day(time_ranges[end].first)) for end in (0, -1))
    return LinePlot(
        line.name,
        f"{texts[-1]}; {texts[0]}",
        Lines(
            (part,),
            Axis(ends=(x[0], x[-1]), ticks=(first, last)),
            Axis(write=short_percent, ends=ends)
            if line.panel.of_shares
            else Axis(unit, short_number, ends=ends),
            height=SMALL,
        ),
    )


def _row(time_range: RangeResult, lines: Sequence[Line], place: int) -> tuple[str, ...]:
    still = " (open)" if time_range.open_period else ""
    figures = [line.text(place) for line in lines]
    return (f"{_days(time_range)}{still}", f"{time_range.n:,}", *figures)


def _notes(
    answer: EstimateResult,
    drawn: Sequence[RangeResult],
    faint: Sequence[RangeResult],
    empty: Sequence[RangeResult],
    values: tuple[int, int | None],
) -> Iterator[str]:
    """Yield what the bands are, and everything that is not drawn."""
    yield (
        f"By {answer.by}, {days(drawn[0].first, drawn[-1].last)}. Bands are the"
        f" {level(answer.level)} intervals, one for each value, {answer.validity}."
    )
    if answer.view is View.SMOOTH:
        yield f"Smoothed: each figure also uses the reports of the times around it. {BANDS}"
    number, size = values
    if size is not None and size > number > 1:
        yield f"The {number} largest of {size:,} values."
    if any(time_range.open_period for time_range in drawn):
        yield "Hollow points are open periods."
    if faint:
        texts = [f"{_days(time_range)} (n = {time_range.n:,})" for time_range in faint]
        yield f"Not drawn, too few reports: {_first_few(texts)}."
    if empty:
        yield f"Without reports: {_first_few(list(map(_days, empty)))}."


def _days(time_range: RangeResult) -> str:
    return days(time_range.first, time_range.last)


def _first_few(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
    return f"{', '.join(texts[:NAMED])}{more}"
