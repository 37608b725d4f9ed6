"""What commands print: a table for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

Facts = Mapping[str, Any]


def tell_json(facts: Facts | Sequence[Facts]) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(facts, indent=2))


def tell_table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table. Nothing is ever cut, or a key would be: beyond a terminal's edge it folds."""
    folding = (Column(each, overflow="fold") for each in columns)
    table = Table(*folding, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 1_000
    console.print(table)


def tell_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines as they are; beside a document for programs, on stderr."""
    for line in lines:
        click.echo(line, err=err)
