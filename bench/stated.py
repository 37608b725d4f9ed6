"""What every line of a part carries: the load, and the ratio to the last figure that was stated.

A ratio to bare Flask is no ratio to the last release: Flask itself takes 75 us in some processes
and 150 in others. So each figure is also compared with that of `bench/history`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import getloadavg
from pathlib import Path
from typing import Any

from .table import Row, Table

HISTORY = Path(__file__).with_name("history")


@dataclass(frozen=True, slots=True)
class Stated:
    """The figures of a part in one file, by their names."""

    file: str
    load: float
    values: Mapping[tuple[Any, Any], float]

    @classmethod
    def last(cls, part: str, load: float, folder: Path = HISTORY) -> Stated | None:
        """Return the newest day's; of several files the one whose load is nearest."""
        every = [
            (content["day"], cls(path.name, _load(content, part), _values(content, part)))
            for path in sorted(folder.glob("*.json"))
            if part in (content := json.loads(path.read_text(encoding="utf-8")))
        ]
        newest = max((day for day, stated in every if stated.values), default="")
        loads = [stated for day, stated in every if stated.values and day == newest]
        return min(loads, key=lambda stated: abs(stated.load - load), default=None)

    def ratio(self, row: Row) -> Row:
        """Return the cell of a figure's ratio; none where it was not stated, or is none."""
        value, before = row.get("value"), self.values.get((row.get("what"), row.get("where")))
        return {"x last": value / before} if isinstance(value, int | float) and before else {}


def _values(content: Mapping[str, Any], part: str) -> dict[tuple[Any, Any], float]:
    return {(row["what"], row["where"]): row["value"] for row in content[part] if "value" in row}


def _load(content: Mapping[str, Any], part: str) -> float:
    """Return the load of a part: its rows', of which one was a row of its own once."""
    rows = [row.get("load", row.get("what") == "load" and row["value"]) for row in content[part]]
    return float(max(filter(None, rows), default=content["machine"].get("load before", 0.0)))


def compared(part: str, table: Table, folder: Path = HISTORY) -> Table:
    """Return a table with the load in each row that has none of its own, and the ratios."""
    load = getloadavg()[0]
    rows, stated = [{**row, "load": row.get("load", load)} for row in table.rows], None
    if any("value" in row for row in rows):
        stated = Stated.last(part, load, folder)
    if stated is None:
        return replace(table, rows=rows)
    note = f"x last: over the figure in bench/history/{stated.file}, load {stated.load:g}."
    rows = [{**row, **stated.ratio(row)} for row in rows]
    return replace(table, rows=rows, notes=(*table.notes, note))
