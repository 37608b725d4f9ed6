"""What a part of the benchmark returns: rows with a target each, shown as text or kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Cell = str | int | float | bool | None
Row = Mapping[str, Cell]

#: the columns of a part that states single figures
FIGURES = {"what": "", "value": ".4g", "where": "", "target": "", "met": ""}


def target(value: float, most: float | None = None, *, least: float | None = None) -> Row:
    """Return the cells of a figure's target, none without one."""
    if most is not None:
        return {"target": f"<= {most:g}", "met": value <= most}
    return {} if least is None else {"target": f">= {least:g}", "met": value >= least}


def figure(
    what: str, value: float, where: str = "", most: float | None = None, **least: float
) -> Row:
    """Return a row of `FIGURES`."""
    return {"what": what, "value": value, "where": where, **target(value, most, **least)}


@dataclass(frozen=True)
class Table:
    """The findings of one part. `columns` maps each column to the format of its numbers."""

    title: str
    columns: Mapping[str, str]
    rows: list[Row]
    notes: tuple[str, ...] = ()

    @property
    def missed(self) -> int:
        """How many targets were missed."""
        return sum(row.get("met") is False for row in self.rows)

    def __str__(self) -> str:
        head = {name: name for name in self.columns}
        cells = [head, *({name: self._shown(row, name) for name in head} for row in self.rows)]
        widths = {name: max(len(line[name]) for line in cells) for name in head}
        lines = [
            " | ".join(self._placed(line, name, widths[name]) for name in head) for line in cells
        ]
        lines.insert(1, "-|-".join("-" * width for width in widths.values()))
        return "\n".join([self.title, "", *(line.rstrip() for line in lines), "", *self.notes])

    def _placed(self, line: Mapping[str, str], name: str, width: int) -> str:
        return line[name].rjust(width) if self.columns[name] else line[name].ljust(width)

    def _shown(self, row: Row, name: str) -> str:
        value = row.get(name)
        if value is None:
            return ""
        if isinstance(value, bool):
            return "yes" if value else "MISSED"
        return value if isinstance(value, str) else format(value, self.columns[name])


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
