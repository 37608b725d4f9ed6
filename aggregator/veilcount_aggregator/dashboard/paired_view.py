"""A local collection with its central pair: the same question, put to two halves of the devices."""

from __future__ import annotations

from dataclasses import dataclass

from ..queries.paired_comparison import MEANS, SHARES, PairedComparison, PairedFigure, PairedRow
from ..text import number_format
from .charts import SHARE, Chart, Drawing, axis, bars, estimates
from .formatting import level, row_name

COLUMNS = ("Value", "Local", "Central")
CAPTION = "The same question to two halves of the devices, each estimate with its interval."


@dataclass(frozen=True, slots=True)
class PairedView:
    """Both sides. Without a `drawing` in its chart there is only the table."""

    about: str
    units: str
    chart: Chart


def paired_view(pair: PairedComparison | None) -> PairedView | None:
    """Return a pair as the page shows it; None: the collection has none."""
    if pair is None:
        return None
    rows = [_row(row, pair) for row in pair.rows]
    same_units = pair.units in {SHARES, MEANS} and all(row.central for row in pair.rows)
    drawing = _drawing(pair) if same_units else {}
    return PairedView(_about(pair), pair.units, Chart("paired", drawing, CAPTION, COLUMNS, rows))


def _about(pair: PairedComparison) -> str:
    central_n = "" if pair.central_n is None else f" (n = {pair.central_n:,})"
    about = (
        f"{pair.local} (n = {pair.n:,}) uses local privacy, {pair.central}{central_n} a trusted"
        f" curator, {pair.first} to {pair.last}. Devices were assigned at random beforehand."
        f" Intervals at {level(pair.level)}, {pair.estimand}"
    )
    if pair.central_epsilon is None or pair.central_level is None:
        return f"{about}."
    return (
        f"{about}; the curator's at {level(pair.central_level)}, of a release that cost epsilon"
        f" {pair.central_epsilon} by {number_format.adjacency(pair.adjacency or '')}."
    )


def _row(row: PairedRow, pair: PairedComparison) -> tuple[str, str, str]:
    shares = row.value is not None
    central = row.central and _figure(row.central, of_shares=shares and pair.units == SHARES)
    return row_name(row.value), _figure(row.local, of_shares=shares), central or "not released"


def _figure(side: PairedFigure, *, of_shares: bool) -> str:
    if side.figure is None:
        return "no reports yet"
    interval = number_format.interval(side.low, side.high, of_shares=of_shares)
    return f"{number_format.figure(side.figure, of_shares=of_shares)} ({interval})"


def _drawing(pair: PairedComparison) -> Drawing:
    shares = pair.units == SHARES
    values = [row_name(row.value) for row in pair.rows]
    sides = (
        ("local", [row.local for row in pair.rows]),
        ("central", [row.central for row in pair.rows if row.central]),
    )
    parts = []
    for name, column in sides:
        hover = (
            f"{value}, {name}: {_figure(side, of_shares=shares)}"
            for value, side in zip(values, column, strict=True)
        )
        parts.append(estimates(column, lambda side: side.figure, hover, name))
    return bars(values, parts, axis("share", **SHARE) if shares else axis("mean"))
