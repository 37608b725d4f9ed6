"""Estimates as drawings of matplotlib: a dot and its interval for each figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from veilcount_analysis.text.result_columns import spelled

from .frames import load

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: the kinds of figure that are drawn, the first of those that a result has
SHOWN = ("correlation", "mean", "share")
MOST_VALUES = 20  # in one drawing
MOST_PANELS, COLUMNS = 9, 3  # of small multiples


Row = Mapping[str, Any]


def draw(series: Row, level: float) -> Any:
    """Draw a series: its values, or a number's mean or distribution; over time small multiples."""
    ranges = series["ranges"]
    if len(ranges) > 1:
        return _over_time(series, level)
    if ranges[0]["bands"]:
        return _curve(_new_figure(6, 4).subplots(), series, level)
    return _dots(series, level)


def shown(time_range: Row) -> list[Row]:
    """Return the figures of a time range that are drawn."""
    figures = time_range["figures"]
    kinds = {row["kind"] for row in figures}
    kind = next((kind for kind in SHOWN if kind in kinds), "")
    return [row for row in figures if row["kind"] == kind]


def label(row: Row) -> str:
    """Return what a figure is of."""
    return spelled(row["of"]) or row["kind"]


def _dots(series: Row, level: float) -> Axes:
    rows = shown(series["ranges"][0])
    drawn = rows[:MOST_VALUES]
    axes: Axes = _new_figure(6, 1.2 + 0.3 * len(drawn)).subplots()
    places = np.arange(len(drawn))
    axes.hlines(places, _column(drawn, "low"), _column(drawn, "high"), linewidth=2)
    axes.plot(_column(drawn, "figure"), places, "o")
    axes.set_yticks(places, [label(row) for row in drawn])
    axes.invert_yaxis()
    axes.set_title(_title(series), loc="left", fontsize="medium")
    more = f"; {len(rows) - len(drawn):,} more values" if len(rows) > len(drawn) else ""
    axes.set_xlabel(f"{_unit(series)}, {level:.4g} interval of each on its own{more}")
    return axes


def _over_time(series: Row, level: float) -> Any:
    """Draw a small multiple for each of the values with the largest shares at last."""
    by_range = [{label(row): row for row in shown(part)} for part in series["ranges"]]
    labels = list(by_range[-1])[:MOST_PANELS]
    rows = -(-len(labels) // COLUMNS)
    columns = min(COLUMNS, len(labels))
    figure = _new_figure(3 * columns, 2.2 * rows)
    panels = np.ravel(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False))
    days = [date.fromisoformat(str(part["from"])) for part in series["ranges"]]
    for axes, name in zip(panels, labels, strict=False):
        points = [rows_by_label[name] for rows_by_label in by_range]
        _draw_band(axes, days, points, "o-", markersize=3)
        axes.tick_params(axis="x", labelrotation=45)
        axes.set_title(name, loc="left", fontsize="medium")
    for axes in panels[len(labels) :]:
        axes.set_axis_off()
    more = len(by_range[-1]) - len(labels)
    left_out = f"; {more:,} more values" if more else ""
    figure.supxlabel(f"{_unit(series)}, {level:.4g} interval of each on its own{left_out}")
    return panels[: len(labels)]


def _curve(axes: Axes, series: Row, level: float) -> Axes:
    """Draw the share of the numbers below each edge."""
    (time_range,) = series["ranges"]
    curve = [row for row in time_range["figures"] if row["kind"] == "curve"]
    _draw_band(axes, _column(curve, "at"), curve)
    axes.set_title(_title(series), loc="left", fontsize="medium")
    axes.set_ylabel("share of the numbers below")
    axes.set_xlabel(f"band at {level:.4g}: {time_range['bands']}")
    return axes


def _draw_band(axes: Axes, x: Any, rows: Sequence[Row], *look: str, **options: Any) -> None:
    """Draw figures as a line, and their intervals as a band."""
    axes.fill_between(x, _column(rows, "low"), _column(rows, "high"), alpha=0.25, linewidth=0)
    axes.plot(x, _column(rows, "figure"), *look, **options)


def _column(rows: Sequence[Row], name: str) -> Any:
    """Return a column of figures; NaN where nothing was received."""
    return np.array([row[name] for row in rows], np.float64)


def _title(series: Row) -> str:
    time_range = series["ranges"][0]
    about = f"{series['question']}  n = {time_range['n']:,}"
    return about if time_range["usable"] else f"{about}\n{time_range['adequacy']}"


def _unit(series: Row) -> str:
    return next((row["kind"] for row in shown(series["ranges"][0])), "")


def _new_figure(width: float, height: float) -> Figure:
    figure: Figure = load("matplotlib.pyplot", "plot").figure(
        figsize=(width, height), layout="constrained"
    )
    return figure
