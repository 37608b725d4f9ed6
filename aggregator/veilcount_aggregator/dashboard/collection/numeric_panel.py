"""The mean of a number, its quantiles, its distribution function and a histogram.

A range tree estimates the intervals of histogram bars directly; otherwise they follow from the band
of the distribution function: its range at the bar's end minus its range at the bar's start.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...queries.estimate_schema import CurveRow, EstimateResult, MeanRow, Spread, TimeRangeEstimate
from ...text import number_format
from .. import charts
from ..charts import Chart
from ..formatting import days, fake_share, level, number_interval
from .url_state import PARTS

NOISE = "noise"
TABLE_ROWS = 32  # of a curve; the file has all


@dataclass(frozen=True, slots=True)
class MeanView:
    """The mean and its interval."""

    figure: str
    interval: str
    about: str
    poisoning: str


@dataclass(frozen=True, slots=True)
class NumericPanel:
    """The figures of a number; `covers` is what the band covers."""

    mean: MeanView
    covers: str = ""
    guaranteed: bool = False
    curve: Chart | None = None
    parts: Chart | None = None
    quantiles: tuple[tuple[str, str, str], ...] = ()


def numeric_panel(
    answer: EstimateResult, time_range: TimeRangeEstimate, chart: str
) -> NumericPanel | None:
    """Return the figures of a time range; None: there is no report."""
    if time_range.mean is None or time_range.mean.mean is None:
        return None
    mean, spread = _mean(answer, time_range.mean, time_range), time_range.spread
    if spread is None:
        return NumericPanel(mean)
    return NumericPanel(
        mean,
        spread.covers,
        NOISE not in spread.covers,
        _curve(answer, time_range, spread, f"{chart}-curve"),
        None if time_range.values else _parts(time_range, spread, f"{chart}-parts"),
        tuple(
            (
                f"{100 * each.share:.3g}%",
                ""
                if each.value is None
                else number_format.precise(each.value, each.low, each.high),
                number_interval(each.low, each.high),
            )
            for each in spread.quantiles
        ),
    )


def _mean(answer: EstimateResult, row: MeanRow, time_range: TimeRangeEstimate) -> MeanView:
    fakes = number_interval(row.fake_low, row.fake_high)
    return MeanView(
        number_format.precise(row.mean or 0.0, row.low, row.high),
        number_interval(row.low, row.high),
        f"interval at {level(answer.level)}, {answer.validity}, {time_range.estimand};"
        f" n = {time_range.n:,}",
        f"{fake_share(answer.fakes)} fake reports could have shifted it: the mean of genuine"
        f" reports may lie anywhere in {fakes}"
        if answer.fakes
        else "",
    )


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
