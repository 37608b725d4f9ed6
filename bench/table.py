"""What a part of the benchmark returns: rows with a target each, shown as text or kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

Cell = str | int | float | bool | None
Row = Mapping[str, Cell]

JUDGEMENT = ("target", "met")  # the last columns


def target(value: float, most: float | None = None, *, least: float | None = None) -> Row:
    """Return the cells of a figure's target, none without one."""
    if most is not None:
        return {"target": f"<= {most:g}", "met": value <= most}
    return {} if least is None else {"target": f">= {least:g}", "met": value >= least}


def figure(
    what: str, value: float, where: str = "", most: float | None = None, **least: float
) -> Row:
    """Return a row that states one figure."""
    return {"what": what, "value": value, "where": where, **target(value, most, **least)}


@dataclass(frozen=True)
class Table:
    """The findings of one part; fractions in so many digits."""

    title: str
    rows: Sequence[Row]
    notes: tuple[str, ...] = ()
    digits: int = 4

    @property
    def columns(self) -> list[str]:
        """The names in all rows, in the order in which they first appear; the judgement last."""
        names = dict.fromkeys(name for row in self.rows for name in row)
        return sorted(names, key=JUDGEMENT.__contains__)

    @property
    def missed(self) -> int:
        """How many targets were missed."""
        return sum(row.get("met") is False for row in self.rows)

    def __str__(self) -> str:
        columns = [self._column(name) for name in self.columns]
        lines = [" | ".join(cells) for cells in zip(*columns, strict=True)]
        lines.insert(1, "-|-".join("-" * len(cells[0]) for cells in columns))
        return "\n".join([self.title, "", *(line.rstrip() for line in lines), "", *self.notes])

    def _column(self, name: str) -> list[str]:
        """Return a column's name and cells in one width, numbers at the right."""
        cells = [row.get(name) for row in self.rows]
        texts = [name, *map(self._shown, cells)]
        width = max(map(len, texts))
        numbers = any(
            isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells
        )
        return [text.rjust(width) if numbers else text.ljust(width) for text in texts]

    def _shown(self, value: Cell) -> str:
        if value is None:
            return ""
        if isinstance(value, bool):
            return "yes" if value else "MISSED"
        if isinstance(value, float) and abs(value) < 1000:
            return f"{value:.{self.digits}g}"
        return value if isinstance(value, str) else f"{value:,.0f}"


def as_json(day: str, machine: Mapping[str, Cell], tables: Mapping[str, Table]) -> str:
    """Return the results as JSON with one row a line, so that a change shows as changed lines."""
    parts = ",\n".join(f'"{name}": [\n{_rows(table)}\n]' for name, table in tables.items())
    return f'{{"day": "{day}", "machine": {json.dumps(machine)},\n{parts}}}\n'


def _rows(table: Table) -> str:
    return ",\n".join(json.dumps(dict(_cells(row))) for row in table.rows)


def _cells(row: Row) -> Iterator[tuple[str, Cell]]:
    for name, value in row.items():
        if value is not None:
            yield name, float(f"{value:.6g}") if isinstance(value, float) else value
