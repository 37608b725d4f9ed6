"""A number's mean, its quantiles, the curve below which they lie, and the shares of its parts.

A part's share has an interval too. Where the design tells ranges, it is the range's own; where it
does not, it is what the curve's band leaves: the share below the part's end less that below its
beginning, each anywhere within the band.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...queries.estimate_schema import CurveRow, EstimateResult, MeanRow, Spread, TimeRangeEstimate
from ...text import number_format
from .. import charts
from .formatting import between, days, level_of, of_fakes
from .share_panel import Chart
from .url_state import PARTS

NOISE = "noise"


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean in words."""

    figure: str
    interval: str
    says: str
    fakes: str


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of a number: `holds` is what its curve's band holds for."""

    mean: Mean
    holds: str = ""
    guaranteed: bool = False
    curve: Chart | None = None
    parts: Chart | None = None
    quantiles: tuple[tuple[str, str, str], ...] = ()


def numbers(answer: EstimateResult, time_range: TimeRangeEstimate, chart: str) -> Told | None:
    """Return what a stretch tells of a number; None: nothing was received."""
    if time_range.mean is None or time_range.mean.mean is None:
        return None
    mean, spread = _mean(answer, time_range.mean, time_range), time_range.spread
    if spread is None:
        return Told(mean)
    return Told(
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
                between(each.low, each.high),
            )
            for each in spread.quantiles
        ),
    )


def _mean(answer: EstimateResult, row: MeanRow, time_range: TimeRangeEstimate) -> Mean:
    fakes = between(row.fake_low, row.fake_high)
    return Mean(
        number_format.precise(row.mean or 0.0, row.low, row.high),
        between(row.low, row.high),
        f"interval at {level_of(answer.level)}, {answer.validity}, {time_range.of};"
        f" n = {time_range.n:,}",
        f"{of_fakes(answer.fakes)} of fake reports could have moved it: the honest mean may be"
        f" anything in {fakes}"
        if answer.fakes
        else "",
    )


def _curve(
    answer: EstimateResult, time_range: TimeRangeEstimate, spread: Spread, chart: str
) -> Chart:
    rows = [each for each in spread.curve if each.share is not None]
    told = [_told(each) for each in rows]
    line = charts.estimates(
        [each.share for each in rows],
        [each.low for each in rows],
        [each.high for each in rows],
        told,
        name="Share below",
        x=[each.at for each in rows],
        dots=False,
    )
    label = (
        f"Share of n = {time_range.n:,} answers below each number, UTC days"
        f" {days(time_range.first, time_range.last)}. The band holds"
        f" at {level_of(answer.level)} for"
        f" {spread.covers}."
    )
    return Chart(
        chart,
        charts.lines([line], charts.axis("number"), charts.axis("share below", **charts.SHARE)),
        label,
        ("Number", "Share below", "Band"),
        tuple(_below(each) for each in _some(rows)),
    )


def _told(row: CurveRow) -> str:
    at, share, band = _below(row)
    return f"below {at}: {share} ({band})"


def _below(row: CurveRow) -> tuple[str, str, str]:
    return (
        number_format.figure(row.at, of_shares=False),
        number_format.share(row.share or 0.0),
        number_format.interval(row.low, row.high, of_shares=True),
    )


def _some(rows: Sequence[CurveRow]) -> list[CurveRow]:
    """Return the edges of 32 parts: a table of all 257 is what the file is for."""
    return list(rows[:: max(1, (len(rows) - 1) // 32)])


def _parts(time_range: TimeRangeEstimate, spread: Spread, chart: str) -> Chart:
    low, high = _band(spread)
    share = np.array([each.frequency for each in spread.buckets]).reshape(PARTS, -1).sum(axis=1)
    ends = [each.at for each in spread.curve[:: len(spread.buckets) // PARTS]]
    names = [f"{a:.6g} to {b:.6g}" for a, b in pairwise(ends)]
    rows = [
        (name, number_format.share(each), number_format.interval(a, b, of_shares=True))
        for name, each, a, b in zip(names, share.tolist(), low, high, strict=True)
    ]
    told = [f"{name}: {each} ({between})" for name, each, between in rows]
    label = (
        f"How n = {time_range.n:,} answers are spread over the range."
        " Intervals are what the curve's"
        f" band leaves; it holds for {spread.covers}."
    )
    drawn = charts.estimates(share.tolist(), low, high, told, name="Share")
    axis = charts.axis("share of the answers", **charts.SHARE)
    return Chart(
        chart,
        charts.bars(names, [drawn], axis),
        label,
        ("Part of the range", "Share", "Interval"),
        tuple(rows),
    )


def _band(spread: Spread) -> tuple[list[float], list[float]]:
    """Return between which shares each part lies, wherever the curve runs within its band."""
    step = len(spread.buckets) // PARTS
    low = np.array([each.low for each in spread.curve[::step]])
    high = np.array([each.high for each in spread.curve[::step]])
    least = np.maximum(low[1:] - high[:-1], 0)
    most = np.minimum(high[1:] - low[:-1], 1)
    return least.tolist(), most.tolist()
