"""Estimates as drawings of matplotlib: a dot and its interval for each figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from veilcount_analysis.text.result_columns import spelled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CORRELATION = "correlation"  # of several numbers
MOST_VALUES = 20  # in one drawing
MOST_PANELS, COLUMNS = 9, 3  # of small multiples


def draw(series: Mapping[str, Any], level: float) -> Any:
    """Draw a series: its values, or a number's mean or distribution; over time small multiples."""
    ranges = series["time_ranges"]
    if len(ranges) > 1:
        return _over_time(series, level)
    if ranges[0]["spread"]:
        return _curve(_new_figure(6, 4).subplots(), series, level)
    return _dots(series, level)


def _dots(series: Mapping[str, Any], level: float) -> Axes:
    rows = _figures(series["time_ranges"][0])
    shown = rows[:MOST_VALUES]
    axes: Axes = _new_figure(6, 1.2 + 0.3 * len(shown)).subplots()
    places = np.arange(len(shown))
    axes.hlines(places, [row.low for row in shown], [row.high for row in shown], linewidth=2)
    axes.plot([row.figure for row in shown], places, "o")
    axes.set_yticks(places, [row.label for row in shown])
    axes.invert_yaxis()
    axes.set_title(_title(series, series["time_ranges"][0]), loc="left", fontsize="medium")
    more = f"; {len(rows) - len(shown):,} more values" if len(rows) > len(shown) else ""
    axes.set_xlabel(f"{_unit(series)}, {level:.4g} interval of each on its own{more}")
    return axes


def _over_time(series: Mapping[str, Any], level: float) -> Any:
    """Draw a small multiple for each of the values with the largest shares at last."""
    by_range = [{row.label: row for row in _figures(each)} for each in series["time_ranges"]]
    labels = list(by_range[-1])[:MOST_PANELS]
    rows = -(-len(labels) // COLUMNS)
    columns = min(COLUMNS, len(labels))
    figure = _new_figure(3 * columns, 2.2 * rows)
    panels = np.ravel(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False))
    days = [date.fromisoformat(str(each["from"])) for each in series["time_ranges"]]
    for axes, label in zip(panels, labels, strict=False):
        points = [found[label] for found in by_range]
        axes.fill_between(
            days, [row.low for row in points], [row.high for row in points], alpha=0.25, linewidth=0
        )
        axes.plot(days, [row.figure for row in points], "o-", markersize=3)
        axes.tick_params(axis="x", labelrotation=45)
        axes.set_title(label, loc="left", fontsize="medium")
    for axes in panels[len(labels) :]:
        axes.set_axis_off()
    more = len(by_range[-1]) - len(labels)
    left_out = f"; {more:,} more values" if more else ""
    figure.supxlabel(f"{_unit(series)}, {level:.4g} interval of each on its own{left_out}")
    return panels[: len(labels)]


def _curve(axes: Axes, series: Mapping[str, Any], level: float) -> Axes:
    """Draw the share of the numbers below each edge."""
    curve = series["time_ranges"][0]["spread"]["curve"]
    low, high, at, share = (
        [np.nan if each[name] is None else each[name] for each in curve]
        for name in ("low", "high", "at", "share")
    )
    axes.fill_between(at, low, high, alpha=0.25, linewidth=0)
    axes.plot(at, share)
    axes.set_title(_title(series, series["time_ranges"][0]), loc="left", fontsize="medium")
    axes.set_ylabel("share of the numbers below")
    axes.set_xlabel(f"band at {level:.4g}: {series['time_ranges'][0]['spread']['covers']}")
    return axes


@dataclass(frozen=True, slots=True)
class _Figure:
    label: str
    figure: float
    low: float
    high: float


def _figures(time_range: Mapping[str, Any]) -> list[_Figure]:
    """Return the figures of a time range; NaN where nothing was received."""
    if mean := time_range["mean"]:
        return [_Figure("mean", _number(mean["mean"]), mean["low"], mean["high"])]
    if moments := time_range.get("moments", []):
        return [
            _Figure(
                " and ".join(row["of"]), *map(_number, (row["figure"], row["low"], row["high"]))
            )
            for row in moments
            if row["kind"] == CORRELATION
        ]
    return [
        _Figure(spelled(row["value"]), _number(row["frequency"]), row["low"], row["high"])
        for row in time_range["values"]
    ]


def _number(figure: float | None) -> float:
    return np.nan if figure is None else figure


def _title(series: Mapping[str, Any], time_range: Mapping[str, Any]) -> str:
    about = f"{series['question']}  n = {time_range['n']:,}"
    return about if time_range["usable"] else f"{about}\n{time_range['adequacy']}"


def _unit(series: Mapping[str, Any]) -> str:
    first = series["time_ranges"][0]
    return "mean" if first["mean"] else CORRELATION if first.get("moments") else "share"


def _new_figure(width: float, height: float) -> Figure:
    try:
        from matplotlib import pyplot as plt  # noqa: PLC0415 - optional
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError("plot needs matplotlib: pip install matplotlib") from missing
    return plt.figure(figsize=(width, height), layout="constrained")
