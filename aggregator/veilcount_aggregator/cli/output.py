"""What commands print: a table for people, JSON for programs."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from .terminal_escape import visible

Facts = Mapping[str, Any]


def tell_json(facts: Facts | Sequence[Facts]) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(facts, indent=2))


def tell_table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table. Nothing is ever cut, or a key would be: beyond a terminal's edge it folds."""
    folding = (Column(each, overflow="fold") for each in columns)
    table = Table(*folding, box=None, pad_edge=False)
    for row in rows:
        table.add_row(
            *(cell if isinstance(cell, Text) else Text(visible(str(cell))) for cell in row)
        )
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 1_000
    console.print(table)


def tell_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines: to a person's terminal between words, under their own beginning; else as is.

    What is longer than a line and has no space, as a key, is never broken. Beside a document for
    programs they go to stderr.
    """
    width = terminal_width(err=err)
    for line in map(visible, lines):
        click.echo(line if width is None else _wrapped(line, width), err=err)


def tell_verbatim(text: str) -> None:
    """Print what is to be copied: no line of it is broken."""
    click.echo(text)


def terminal_width(*, err: bool = False) -> int | None:
    """Return how many letters a line of a person's terminal holds; None: there is none."""
    stream = sys.stderr if err else sys.stdout
    seen = stream is not None and stream.isatty()  # a shell can close it: then there is none
    return shutil.get_terminal_size().columns if seen else None


def _wrapped(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(
        line,
        width,
        subsequent_indent=indent,
        drop_whitespace=True,
        break_long_words=False,
        break_on_hyphens=False,
    )
