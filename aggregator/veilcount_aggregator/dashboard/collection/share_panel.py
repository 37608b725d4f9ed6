"""The chart of the shares of values."""

from __future__ import annotations

from collections.abc import Iterator

from ...queries.estimate_schema import EstimateResult, SeriesEstimate, ShareRow, TimeRangeEstimate
from ...text import number_format
from .. import charts
from ..charts import Chart, Drawing
from ..formatting import days, fake_share, level, value_name


def share_chart(
    answer: EstimateResult, series: SeriesEstimate, time_range: TimeRangeEstimate, chart: str
) -> Chart | None:
    """Draw the shares of a time range; None: no report, or no value is shown."""
    rows = [each for each in time_range.values if each.frequency is not None]
    if not rows:
        return None
    shown = [*rows, *([time_range.absent] if time_range.absent else [])]
    return Chart(
        chart,
        charts.bars(
            [value_name(each.value) for each in shown],
            [_bars(answer, shown)],
            charts.axis("share of the reports", **charts.SHARE),
        ),
        _label(answer, series, time_range),
        tuple(_columns(answer)),
        tuple(_row(answer, each, time_range.n) for each in shown),
    )


def _bars(answer: EstimateResult, rows: list[ShareRow]) -> Drawing:
    drawn = charts.estimates(
        rows,
        lambda row: row.frequency,
        [_hover(answer, each) for each in rows],
        name=f"Estimate, {level(answer.level)} interval",
    )
    if not answer.fakes:
        return drawn
    low, high = [each.fake_low for each in rows], [each.fake_high for each in rows]
    name = f"If {fake_share(answer.fakes)} of the reports were fake"
    return drawn | {"outer": {"name": name, "low": low, "high": high}}


def _hover(answer: EstimateResult, row: ShareRow) -> str:
    share = number_format.share(row.frequency or 0.0)
    interval = number_format.interval(row.low, row.high, of_shares=True)
    return f"{value_name(row.value)}: {share} ({interval} at {level(answer.level)})"


def _label(answer: EstimateResult, series: SeriesEstimate, time_range: TimeRangeEstimate) -> str:
    together = "simultaneous" if answer.simultaneous else "individual"
    reports = "answers" if series.counts == "answers" else "reports"
    open_period = "; the latest period is still open" if time_range.open_period else ""
    return (
        f"Shares of n = {time_range.n:,} {reports},"
        f" UTC days {days(time_range.first, time_range.last)}"
        f"{open_period}. Intervals at {level(answer.level)}, {together}, {answer.validity},"
        f" {time_range.estimand}."
    )


def _columns(answer: EstimateResult) -> Iterator[str]:
    yield from ("Value", "Share", f"Interval at {level(answer.level)}", "Reports, of n")
    if answer.fakes:
        yield f"If {fake_share(answer.fakes)} were fake"


def _row(answer: EstimateResult, row: ShareRow, n: int) -> tuple[str, ...]:
    cells = (
        value_name(row.value),
        number_format.share(row.frequency or 0.0),
        number_format.interval(row.low, row.high, of_shares=True),
        f"{row.answers or 0.0:,.0f} of {n:,}",
    )
    if not answer.fakes:
        return cells
    return (*cells, number_format.interval(row.fake_low, row.fake_high, of_shares=True))
