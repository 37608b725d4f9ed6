"""The figures of a time range: shares of values; or a number's mean, quantiles and distribution.

A range tree estimates the intervals of histogram bars directly; otherwise they follow from the band
of the distribution function: its range at the bar's end minus its range at the bar's start.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...queries.estimate_schema import (
    CurveRow,
    EstimateResult,
    MeanRow,
    SeriesEstimate,
    ShareRow,
    Spread,
    TimeRangeEstimate,
)
from ...text import number_format
from .. import charts
from ..charts import Chart, Drawing
from ..formatting import days, fake_share, level, number_interval, value_name
from ..pages import Content
from .url_state import PARTS


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


NOISE = "noise"
TABLE_ROWS = 32  # of a curve; the file has all


def numeric_panel(
    answer: EstimateResult, time_range: TimeRangeEstimate, chart: str
) -> Content | None:
    """Return the figures of a time range; `covers` is what the band covers. None: no report."""
    if time_range.mean is None or time_range.mean.mean is None:
        return None
    content, spread = {"mean": _mean(answer, time_range.mean, time_range)}, time_range.spread
    if spread is None:
        return content
    quantiles = [
        (
            f"{100 * each.share:.3g}%",
            "" if each.value is None else number_format.precise(each.value, each.low, each.high),
            number_interval(each.low, each.high),
        )
        for each in spread.quantiles
    ]
    return {
        **content,
        "covers": spread.covers,
        "guaranteed": NOISE not in spread.covers,
        "curve": _curve(answer, time_range, spread, f"{chart}-curve"),
        "parts": None if time_range.values else _parts(time_range, spread, f"{chart}-parts"),
        "quantiles": quantiles,
    }


def _mean(answer: EstimateResult, row: MeanRow, time_range: TimeRangeEstimate) -> Content:
    fakes = number_interval(row.fake_low, row.fake_high)
    return {
        "figure": number_format.precise(row.mean or 0.0, row.low, row.high),
        "interval": number_interval(row.low, row.high),
        "about": f"interval at {level(answer.level)}, {answer.validity}, {time_range.estimand};"
        f" n = {time_range.n:,}",
        "poisoning": f"{fake_share(answer.fakes)} fake reports could have shifted it: the mean of"
        f" genuine reports may lie anywhere in {fakes}"
        if answer.fakes
        else "",
    }


def _curve(
    answer: EstimateResult, time_range: TimeRangeEstimate, spread: Spread, chart: str
) -> Chart:
    rows = [each for each in spread.curve if each.share is not None]
    cells = [_below(each) for each in rows]
    line = charts.estimates(
        rows,
        lambda row: row.share,
        [f"below {at}: {share} ({band})" for at, share, band in cells],
        name="Share below",
        x=[each.at for each in rows],
        dots=False,
    )
    label = (
        f"Share of n = {time_range.n:,} reports below each number, UTC days"
        f" {days(time_range.first, time_range.last)}. The band at"
        f" {level(answer.level)} covers {spread.covers}."
    )
    return Chart(
        chart,
        charts.lines([line], charts.axis("number"), charts.axis("share below", **charts.SHARE)),
        label,
        ("Number", "Share below", "Band"),
        cells[:: max(1, (len(cells) - 1) // TABLE_ROWS)],
    )


def _below(row: CurveRow) -> tuple[str, str, str]:
    return (
        number_format.figure(row.at, of_shares=False),
        number_format.share(row.share or 0.0),
        number_format.interval(row.low, row.high, of_shares=True),
    )


class RangePart(NamedTuple):
    """A part of the range, with the bounds of its share that the band implies."""

    name: str
    share: float
    low: float
    high: float


def _parts(time_range: TimeRangeEstimate, spread: Spread, chart: str) -> Chart:
    step = len(spread.buckets) // PARTS
    shares = np.array([each.frequency for each in spread.buckets]).reshape(PARTS, step).sum(axis=1)
    parts = [
        RangePart(
            f"{start.at:.6g} to {end.at:.6g}",
            share,
            max(end.low - start.high, 0),
            min(end.high - start.low, 1),
        )
        for (start, end), share in zip(pairwise(spread.curve[::step]), shares.tolist(), strict=True)
    ]
    rows = [
        (
            part.name,
            number_format.share(part.share),
            number_format.interval(part.low, part.high, of_shares=True),
        )
        for part in parts
    ]
    hover = (f"{name}: {share} ({interval})" for name, share, interval in rows)
    return Chart(
        chart,
        charts.bars(
            [part.name for part in parts],
            [charts.estimates(parts, lambda part: part.share, hover, "Share")],
            charts.axis("share of the reports", **charts.SHARE),
        ),
        f"Distribution of n = {time_range.n:,} reports over the range."
        f" Intervals follow from the band, which covers {spread.covers}.",
        ("Part of the range", "Share", "Interval"),
        rows,
    )
