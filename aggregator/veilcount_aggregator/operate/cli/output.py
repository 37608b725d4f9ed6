"""Output of commands: tables and lines for people, JSON for programs; progress and questions."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import click
from rich.console import Console
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from veilcount_analysis.text.view_parts import Part, Table
from veilcount_serving.structured_logging import LogFields, log_event

from .main import NegativeResult, escape_controls, is_terminal

SPINNER_DELAY = 0.7  # seconds
PIPE_WIDTH = 1_000

Facts = Mapping[str, Any]


def print_json(facts: Facts | Sequence[Facts]) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(facts, indent=2))


def print_result(facts: Facts | Sequence[Facts], parts: Iterable[Part], *, as_json: bool) -> None:
    """Print what a command did: one JSON document, or lines and tables for people."""
    if as_json:
        print_json(facts)
    else:
        print_parts(parts)


def facts_table(rows: Sequence[Mapping[str, str]], none: str) -> Table:
    """Return rows of the same names as a table; `none` stands for no rows."""
    columns = tuple(rows[0]) if rows else (none,)
    return Table("", columns, [tuple(row.values()) for row in rows])


def print_table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table. Long cells fold at a terminal's edge: a truncated key would be useless."""
    table = RichTable(
        *(Column(column, overflow="fold") for column in columns), box=None, pad_edge=False
    )
    for row in rows:
        table.add_row(
            *(cell if isinstance(cell, Text) else Text(escape_controls(str(cell))) for cell in row)
        )
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    console.print(table)


def print_parts(parts: Iterable[Part]) -> None:
    """Print sentences and tables, with a blank line around each table."""
    was_table = False
    for number, part in enumerate(parts):
        is_table = isinstance(part, Table)
        if number and (is_table or was_table):
            print_lines([""])
        if isinstance(part, Table):
            print_lines([part.caption] if part.caption else [])
            print_table(part.columns, part.rows)
        else:
            print_lines([part])
        was_table = is_table


def print_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines, wrapped between words with a hanging indent on a terminal, else as they are.

    A word longer than a line, such as a key, is never broken. With JSON on stdout they go to
    stderr.
    """
    width = terminal_width(err=err)
    for line in map(escape_controls, lines):
        click.echo(line if width is None else _wrapped(line, width), err=err)


class StartupLine(Protocol):
    """The line of a server that accepts connections."""

    @property
    def facts(self) -> LogFields:
        """The line as JSON."""


def print_startup(line: StartupLine, *, as_json: bool) -> None:
    """Print a server's line, or log it: unbuffered, since workers are forked meanwhile."""
    if as_json:
        os.write(1, f"{json.dumps(line.facts)}\n".encode())
    elif is_terminal():
        os.write(2, f"{line}\n".encode())
    else:
        log_event("serving", **line.facts)


def print_verbatim(text: str) -> None:
    """Print text to copy: no line of it is wrapped."""
    click.echo(text)


def terminal_width(*, err: bool = False) -> int | None:
    """Return the width of the terminal; None if the stream is not one, or closed."""
    stream = sys.stderr if err else sys.stdout
    return shutil.get_terminal_size().columns if stream is not None and stream.isatty() else None


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """Show one line that changes, on a terminal's stderr."""
    with Console(stderr=True).status("") as status:
        yield status.update


@contextmanager
def spinner(what: str) -> Iterator[None]:
    """Show what takes so long, on a terminal's stderr, once it does."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    status = console.status(what)
    timer = threading.Timer(SPINNER_DELAY, status.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # it may be starting just now: what starts has to be stopped
        status.stop()


def _wrapped(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    return textwrap.fill(
        line,
        width,
        subsequent_indent=" " * (len(line) - len(line.lstrip()) + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


# -- confirmation of what cannot be undone: on a terminal, or by `--yes` ---------------------------

yes_option = click.option("--yes", is_flag=True, help="Do not ask: for scripts.")


def confirm(consequence: str, question: str, instead: str = "give --yes") -> None:
    """State what follows, and go on only if a person agrees."""
    print_lines([consequence], err=True)
    require_terminal(instead)
    if not click.confirm(question, err=True):
        raise NegativeResult("nothing was changed")


def confirm_by_typing(warning: str, word: str, if_so: str, *, flags: str, unchanged: str) -> None:
    """Print a warning, and go on only if a person types this word."""
    print_lines([warning], err=True)
    require_terminal(flags)
    typed = click.prompt(f"Type {word} if {if_so}", default="", err=True)
    if typed.strip() != word:
        raise NegativeResult(f"nothing was changed: {unchanged}")


def require_terminal(instead: str) -> None:
    """Refuse to ask where nobody can answer."""
    if not sys.stdin.isatty():
        raise click.UsageError(f"no terminal to confirm on: {instead}")
