"""The shares of values as bars with whiskers, and the same as rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...queries.estimate_schema import EstimateResult, SeriesEstimate, ShareRow, TimeRangeEstimate
from ...text import number_format
from .. import charts
from ..charts import Drawn
from .formatting import days, level_of, named, of_fakes


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, the sentence under which it stands, and its table."""

    id: str
    drawn: Drawn
    label: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def shares(
    answer: EstimateResult, series: SeriesEstimate, time_range: TimeRangeEstimate, chart: str
) -> Chart | None:
    """Return the shares of a stretch; None: nothing was received, or no value is shown."""
    rows = [each for each in time_range.values if each.frequency is not None]
    if not rows:
        return None
    told = [*rows, *([time_range.absent] if time_range.absent else [])]
    return Chart(
        chart,
        charts.bars(list(map(name_of, told)), [_bars(answer, told)], _axis()),
        _label(answer, series, time_range),
        tuple(_columns(answer)),
        tuple(_row(answer, each, time_range.n) for each in told),
    )


def name_of(row: ShareRow) -> str:
    """Return what a row's value is called."""
    return named(row.value)


def _axis() -> Drawn:
    return charts.axis("share of the answers", **charts.SHARE)


def _bars(answer: EstimateResult, rows: list[ShareRow]) -> Drawn:
    return charts.estimates(
        [each.frequency for each in rows],
        [each.low for each in rows],
        [each.high for each in rows],
        [_told(answer, each) for each in rows],
        name=f"Estimate, {level_of(answer.level)} interval",
        **_outer(answer, rows),
    )


def _outer(answer: EstimateResult, rows: list[ShareRow]) -> dict[str, Drawn]:
    if not answer.fakes:
        return {}
    low = [each.fake_low for each in rows]
    high = [each.fake_high for each in rows]
    name = f"If {of_fakes(answer.fakes)} of the reports were fake"
    return {"outer": {"name": name, "low": low, "high": high}}


def _told(answer: EstimateResult, row: ShareRow) -> str:
    share = number_format.share(row.frequency or 0.0)
    interval = number_format.interval(row.low, row.high, of_shares=True)
    return f"{name_of(row)}: {share} ({interval} at {level_of(answer.level)})"


def _label(answer: EstimateResult, series: SeriesEstimate, time_range: TimeRangeEstimate) -> str:
    together = "all at once" if answer.simultaneous else "each alone"
    reports = "answers" if series.counts == "answers" else "reports"
    open_period = ", some of which take answers still" if time_range.open_period else ""
    return (
        f"Shares of n = {time_range.n:,} {reports},"
        f" UTC days {days(time_range.first, time_range.last)}"
        f"{open_period}. Intervals at {level_of(answer.level)}, {together}, {answer.validity},"
        f" {time_range.of}."
    )


def _columns(answer: EstimateResult) -> Iterator[str]:
    yield from ("Value", "Share", f"Interval at {level_of(answer.level)}", "Answers, of n")
    if answer.fakes:
        yield f"If {of_fakes(answer.fakes)} were fake"


def _row(answer: EstimateResult, row: ShareRow, n: int) -> tuple[str, ...]:
    cells = (
        name_of(row),
        number_format.share(row.frequency or 0.0),
        number_format.interval(row.low, row.high, of_shares=True),
        f"{row.answers or 0.0:,.0f} of {n:,}",
    )
    if not answer.fakes:
        return cells
    return (*cells, number_format.interval(row.fake_low, row.fake_high, of_shares=True))
