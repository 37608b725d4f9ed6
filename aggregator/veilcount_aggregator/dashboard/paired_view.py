"""A collection beside its central twin: one half was asked locally, the other by a curator."""

from __future__ import annotations

from dataclasses import dataclass

from ..queries.paired_comparison import MEANS, SHARES, PairedComparison, PairedFigure, PairedRow
from ..text import number_format
from .charts import SHARE, Drawn, axis, bars, estimates
from .collection.formatting import level_of, named


@dataclass(frozen=True, slots=True)
class Beside:
    """Both sides, in words and figures."""

    about: str
    units: str
    rows: list[tuple[str, str, str]]
    drawn: Drawn | None


def beside(twin: PairedComparison | None) -> Beside | None:
    """Return a twin as the page shows it; None: there is none."""
    if twin is None:
        return None
    alike = twin.units in {SHARES, MEANS}
    return Beside(
        about=_about(twin),
        units=twin.units,
        rows=[_row(row, twin) for row in twin.rows],
        drawn=_drawn(twin) if alike and all(row.central for row in twin.rows) else None,
    )


def _about(twin: PairedComparison) -> str:
    said = (
        f"{twin.local} (n = {twin.n:,}) was asked locally, {twin.central}{_n(twin)} by a trusted"
        f" curator, {twin.first} to {twin.last}. Who was asked which was drawn beforehand."
        f" Intervals at {level_of(twin.level)}, {twin.of}"
    )
    if twin.central_epsilon is None or twin.central_level is None:
        return f"{said}."
    return (
        f"{said}; the curator's at {level_of(twin.central_level)}, of a release that cost epsilon"
        f" {twin.central_epsilon} by {number_format.adjacency(twin.adjacency or '')}."
    )


def _n(twin: PairedComparison) -> str:
    return "" if twin.central_n is None else f" (n = {twin.central_n:,})"


def _row(row: PairedRow, twin: PairedComparison) -> tuple[str, str, str]:
    shares = row.value is not None
    local = _figure(row.local, of_shares=shares)
    if row.central is None:
        return _value(row), local, ""
    return _value(row), local, _figure(row.central, of_shares=shares and twin.units == SHARES)


def _value(row: PairedRow) -> str:
    return "the mean" if row.value is None else named(row.value)


def _figure(side: PairedFigure, *, of_shares: bool) -> str:
    if side.figure is None:
        return "no answers yet"
    interval = number_format.interval(side.low, side.high, of_shares=of_shares)
    return f"{number_format.figure(side.figure, of_shares=of_shares)} ({interval})"


def _drawn(twin: PairedComparison) -> Drawn:
    shares = twin.units == SHARES
    values = [_value(row) for row in twin.rows]
    sides = (
        ("local", [row.local for row in twin.rows]),
        ("central", [row.central for row in twin.rows if row.central]),
    )
    parts = [
        estimates(
            [side.figure for side in column],
            [side.low for side in column],
            [side.high for side in column],
            [
                f"{value}, {name}: {_figure(side, of_shares=shares)}"
                for value, side in zip(values, column, strict=True)
            ],
            name,
        )
        for name, column in sides
    ]
    return bars(values, parts, axis("share", **SHARE) if shares else axis("mean"))
