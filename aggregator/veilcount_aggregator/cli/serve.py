"""`veilcount serve`: the aggregator, in production or for development."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from ..binding import Bind
from ..serving import Ready, serve
from ..settings import ANALYSIS_MEMORY, PREFIX, ROOM, Settings
from . import options

ADDRESS = "127.0.0.1:8420"


@click.command("serve")
@options.store
@click.option(
    "--collections",
    type=click.Path(path_type=Path),
    multiple=True,
    envvar=f"{PREFIX}COLLECTIONS",
    metavar="FILE",
    help="Definitions to load at start; may be given again.",
)
@click.option(
    "--bind",
    default=ADDRESS,
    show_default=True,
    envvar=f"{PREFIX}BIND",
    metavar="PLACE",
    help="host:port, [host]:port or unix:/path.",
)
@click.option("--workers", type=int, default=1, show_default=True, envvar=f"{PREFIX}WORKERS")
@click.option(
    "--room",
    type=int,
    default=ROOM,
    show_default=True,
    envvar=f"{PREFIX}ROOM",
    help="New pseudonyms that a period of a collection may bring.",
)
@click.option(
    "--rate",
    type=int,
    default=0,
    show_default=True,
    envvar=f"{PREFIX}RATE",
    help="Requests a second that each key may send; 0: any number.",
)
@click.option(
    "--journal",
    type=click.Path(path_type=Path),
    envvar=f"{PREFIX}JOURNAL",
    metavar="FILE",
    help="Where central releases are also written, line by line.",
)
@click.option(
    "--analysis-memory",
    type=int,
    default=ANALYSIS_MEMORY,
    show_default=True,
    envvar=f"{PREFIX}ANALYSIS_MEMORY",
    metavar="MB",
    help="What the analysis process may take for its data; 0: any number.",
)
@click.option(
    "--dev", is_flag=True, envvar=f"{PREFIX}DEV", help="Make the store; take test batches."
)
@click.option("--json", "as_json", is_flag=True, help="Print the line at start as JSON.")
@click.pass_context
def command(
    context: click.Context,
    *,
    url: str | None,
    collections: tuple[Path, ...],
    bind: str,
    workers: int,
    room: int,
    rate: int,
    journal: Path | None,
    analysis_memory: int,
    dev: bool,
    as_json: bool,
) -> None:
    """Take reports and answer analysts, until SIGTERM."""
    store = options.given(url)
    settings = Settings(store, collections, dev, room, rate, workers, journal, analysis_memory)
    context.exit(serve(settings, Bind.parse(bind), _json if as_json else _line))


def _line(ready: Ready) -> None:
    """Say it to a person: past Python's own buffers, since workers are forked meanwhile."""
    os.write(2, f"{ready}\n".encode())


def _json(ready: Ready) -> None:
    os.write(1, f"{json.dumps(ready.facts)}\n".encode())
