"""The figures of a time range: shares of values; or a number's mean, quantiles and distribution.

A range tree estimates the intervals of histogram bars directly; otherwise they follow from the band
of the distribution function: its range at the bar's end minus its range at the bar's start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from veilcount_analysis.text import number_format
from veilcount_analysis.text.number_format import fake_share, level
from veilcount_analysis.text.result_columns import spelled, value_name
from veilcount_analysis.text.utc_days import days

from ....queries.estimate_schema import (
    EstimateResult,
    MeanRow,
    MomentRow,
    SeriesEstimate,
    ShareRow,
    Spread,
    TimeRangeEstimate,
)
from ..charts import SMALL, Axis, Chart, LinePlot, Lines, Part
from ..formatting import number_interval, short_number, short_percent
from ..pages import Content
from ..scales import Scale
from ..svg import DotPlot, DotRow
from .url_state import PARTS

NOISE = "noise"
TABLE_ROWS = 32  # of a curve; the file has all
CURVE_TOP = 1.05  # of the height: a band that ends at 1 is seen to end


def share_plot(
    answer: EstimateResult,
    time_range: TimeRangeEstimate,
    rows: Sequence[ShareRow],
    before: TimeRangeEstimate | None,
) -> DotPlot | None:
    """Draw some shares of a time range in their order; None: no report, or no value."""
    known = [row for row in rows if row.frequency is not None]
    if not known:
        return None
    shown = [*known, *([time_range.absent] if time_range.absent else [])]
    past = {spelled(row.value): row for row in before.values} if before else {}
    scale = _share_scale(answer, shown)
    interval = f"{level(answer.level)} interval"
    return DotPlot(
        "Shares of the reports",
        ("Value", "Share", interval, "Reports", *_more_columns(answer, before)),
        scale.x_ticks(short_percent),
        [_dot_row(answer, row, scale, past if before else None) for row in shown],
    )


def _more_columns(answer: EstimateResult, before: TimeRangeEstimate | None) -> Iterator[str]:
    if before:
        yield f"Before, {days(before.first, before.last)}"
    if answer.fakes:
        yield f"If {fake_share(answer.fakes)} were fake"


def _share_scale(answer: EstimateResult, rows: Sequence[ShareRow]) -> Scale:
    ends = [end for row in rows for end in (row.low, row.frequency or 0.0, row.high)]
    ends += [end for row in rows for end in (row.fake_low, row.fake_high) if answer.fakes]
    return Scale.covering([0.0, *ends])


def _dot_row(
    answer: EstimateResult, row: ShareRow, scale: Scale, past: Mapping[str, ShareRow] | None
) -> DotRow:
    share, before = row.frequency or 0.0, (past or {}).get(spelled(row.value))
    cells = [
        number_format.share(share),
        number_format.interval(row.low, row.high, of_shares=True),
        f"{row.answers or 0.0:,.0f}",
    ]
    if past is not None:
        cells.append("" if before is None else _share_text(before))
    if answer.fakes:
        cells.append(number_format.interval(row.fake_low, row.fake_high, of_shares=True))
    return DotRow.on(
        scale,
        value_name(row.value),
        (share, row.low, row.high),
        cells,
        band=(row.fake_low, row.fake_high) if answer.fakes else None,
        before=before.frequency if before else None,
    )


def _share_text(row: ShareRow) -> str:
    interval = number_format.interval(row.low, row.high, of_shares=True)
    return f"{number_format.share(row.frequency or 0.0)} ({interval})"


# -- open strings ----------------------------------------------------------------------------------


def candidate_panel(estimate: SeriesEstimate, time_range: TimeRangeEstimate) -> Content | None:
    """Return what was looked for among open strings, and what was not found."""
    search = estimate.search
    if search is None:
        return None
    shown = sum(row.frequency or 0.0 for row in time_range.values)
    return {
        "discovers": search.discovers,
        "candidates": search.candidates,
        "listed": len(time_range.values),
        "found": search.found,
        "missing": search.missing,
        "tested": search.tested,
        "least": number_format.share(search.least_share or 1.0),
        "shown": number_format.share(min(max(shown, 0.0), 1.0)),
        "rest": number_format.share(min(max(1 - shown, 0.0), 1.0)),
    }


# -- several numbers -------------------------------------------------------------------------------

CORRELATIONS, COEFFICIENTS = "correlation", "coefficient"


def moment_panel(answer: EstimateResult, time_range: TimeRangeEstimate) -> Content | None:
    """Return the correlations and the regression as drawings, and all figures as a table."""
    moments = time_range.moments
    if not moments:
        return None
    rows = [(row.kind, ", ".join(row.of), *_moment_cells(answer, row)) for row in moments]
    return {
        "correlations": _moment_plot("Correlations", answer, moments, CORRELATIONS),
        "regression": _moment_plot("Linear regression", answer, moments, COEFFICIENTS),
        "columns": ("Figure", "Of", *_moment_columns(answer)),
        "rows": rows,
    }


def _moment_columns(answer: EstimateResult) -> tuple[str, ...]:
    return "Estimate", f"{level(answer.level)} interval", *_more_columns(answer, None)


def _moment_cells(answer: EstimateResult, row: MomentRow) -> tuple[str, ...]:
    if row.figure is None or row.low is None or row.high is None:
        return "not stated", "too little spread for so much noise", *([""] if answer.fakes else [])
    figure = number_format.precise(row.figure, row.low, row.high)
    band = _moment_band(row)
    fakes = [number_interval(*band) if band else "any number"] if answer.fakes else []
    return figure, number_interval(row.low, row.high), *fakes


def _moment_band(row: MomentRow) -> tuple[float, float] | None:
    known = row.fake_low is not None and row.fake_high is not None
    return (row.fake_low or 0.0, row.fake_high or 0.0) if known else None


def _moment_plot(
    title: str, answer: EstimateResult, moments: Sequence[MomentRow], kind: str
) -> DotPlot | None:
    rows = [row for row in moments if row.kind == kind and row.figure is not None]
    if not rows:
        return None
    ends = [(row.figure or 0.0, row.low or 0.0, row.high or 0.0) for row in rows]
    bands = [_moment_band(row) if answer.fakes else None for row in rows]
    known = [*ends, *filter(None, bands)]
    scale = Scale.covering([0.0, *(end for each in known for end in each)])
    dots = [
        DotRow.on(scale, _moment_name(row), each, _moment_cells(answer, row), band=band)
        for row, each, band in zip(rows, ends, bands, strict=True)
    ]
    return DotPlot(title, ("Of", *_moment_columns(answer)), scale.x_ticks(short_number), dots)


def _moment_name(row: MomentRow) -> str:
    return row.of[1] if row.kind == "coefficient" else " and ".join(row.of)


# -- numbers ---------------------------------------------------------------------------------------


def numeric_panel(
    answer: EstimateResult, time_range: TimeRangeEstimate, before: TimeRangeEstimate | None
) -> Content | None:
    """Return the figures of a time range; `covers` is what the band covers. None: no report."""
    row, spread = time_range.mean, time_range.spread
    if row is None or row.mean is None:
        return None
    content: Content = {"mean": _mean_plot(answer, row, before)}
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
        "curve": _curve(spread),
        "curve_table": _curve_table(answer, spread),
        "parts": None if time_range.values else _parts(spread),
        "quantiles": quantiles,
    }


def _mean_plot(answer: EstimateResult, row: MeanRow, before: TimeRangeEstimate | None) -> DotPlot:
    mean, past = row.mean or 0.0, before.mean if before else None
    ends = [row.low, row.high, *([past.mean or mean] if past else [])]
    scale = Scale.covering([*ends, *((row.fake_low, row.fake_high) if answer.fakes else ())])
    cells = [
        number_format.precise(mean, row.low, row.high),
        number_interval(row.low, row.high),
        *([] if past is None else [_mean_text(past)]),
        *([number_interval(row.fake_low, row.fake_high)] if answer.fakes else []),
    ]
    return DotPlot(
        "The mean",
        ("Figure", "Estimate", f"{level(answer.level)} interval", *_more_columns(answer, before)),
        scale.x_ticks(short_number),
        [
            DotRow.on(
                scale,
                "Mean",
                (mean, row.low, row.high),
                cells,
                band=(row.fake_low, row.fake_high) if answer.fakes else None,
                before=past.mean if past else None,
            )
        ],
    )


def _mean_text(row: MeanRow) -> str:
    mean = number_format.precise(row.mean or 0.0, row.low, row.high)
    return f"{mean} ({number_interval(row.low, row.high)})"


def _curve(spread: Spread) -> LinePlot:
    """Draw the share below each number."""
    rows = [each for each in spread.curve if each.share is not None]
    part = Part(
        x=tuple(each.at for each in rows),
        values=tuple(each.share for each in rows),
        low=tuple(each.low for each in rows),
        high=tuple(each.high for each in rows),
    )
    x, y = Axis(ends=(rows[0].at, rows[-1].at)), Axis(write=short_percent, ends=(0.0, CURVE_TOP))
    return LinePlot(
        "Share of the reports below each number", "", Lines((part,), x, y, height=SMALL)
    )


def _curve_table(answer: EstimateResult, spread: Spread) -> Chart:
    rows = [
        (
            number_format.figure(row.at, of_shares=False),
            number_format.share(row.share or 0.0),
            number_format.interval(row.low, row.high, of_shares=True),
        )
        for row in spread.curve
        if row.share is not None
    ]
    columns = ("Number", "Share below", f"Band at {level(answer.level)}")
    shown = rows[:: max(1, (len(rows) - 1) // TABLE_ROWS)]
    return Chart("curve", None, "Share of the reports below each number", columns, shown)


class RangePart(NamedTuple):
    """A part of the range, with the bounds of its share that the band implies."""

    name: str
    share: float
    low: float
    high: float


def _parts(spread: Spread) -> DotPlot:
    parts = list(_range_parts(spread))
    scale = Scale.covering([0.0, *(end for part in parts for end in (part.low, part.high))])
    rows = [
        DotRow.on(
            scale,
            part.name,
            (part.share, part.low, part.high),
            (
                number_format.share(part.share),
                number_format.interval(part.low, part.high, of_shares=True),
            ),
        )
        for part in parts
    ]
    return DotPlot(
        "Shares of the parts of the range",
        ("Part of the range", "Share", "Interval from the band"),
        scale.x_ticks(short_percent),
        rows,
    )


def _range_parts(spread: Spread) -> Iterator[RangePart]:
    step = len(spread.buckets) // PARTS
    shares = np.array([each.frequency for each in spread.buckets]).reshape(PARTS, step).sum(axis=1)
    ends = pairwise(spread.curve[::step])
    for (start, end), share in zip(ends, shares.tolist(), strict=True):
        yield RangePart(
            f"{start.at:.6g} to {end.at:.6g}",
            share,
            max(end.low - start.high, 0),
            min(end.high - start.low, 1),
        )
