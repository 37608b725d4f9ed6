"""Progress of the replay: a bar on a terminal, else a line per month; nothing with --json."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

ShowDay = Callable[[int, int, datetime], None]  # a day, of how many, and its instant


@contextmanager
def day_progress(*, quiet: bool) -> Iterator[ShowDay]:
    """Show the replayed days on stderr."""
    console = Console(stderr=True)
    if quiet:
        yield lambda *_: None
    elif console.is_terminal:
        with _bar(console) as show:
            yield show
    else:
        yield _Months()


@contextmanager
def _bar(console: Console) -> Iterator[ShowDay]:
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("simulating users")

        def show(day: int, of: int, instant: datetime) -> None:
            progress.update(task, total=of, completed=day, description=f"{instant:%Y-%m-%d}")

        yield show


class _Months:
    """A line at the beginning of each month."""

    def __init__(self) -> None:
        self._month = ""

    def __call__(self, day: int, of: int, instant: datetime) -> None:
        month = f"{instant:%Y-%m}"
        if month != self._month:
            self._month = month
            click.echo(f"{month}: day {day + 1} of {of}", err=True)
