"""`veilcount serve`: the aggregator, in production or for development."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from veilcount_shared.report import OPEN_BODY_PSEUDONYMS

from ..server.listen_address import ListenAddress
from ..server.serve import StartupSummary, serve
from ..settings import ANALYSIS_MEMORY, NEW_PER_HOUR, PREFIX, ROOM, Settings, classes_in
from . import options
from .memory_options import memory_limits

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
    help="Requests a second that each key may send to this server; 0: any number.",
)
@memory_limits
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
@click.option(
    "--max-pseudonyms-per-body",
    type=int,
    default=OPEN_BODY_PSEUDONYMS,
    show_default=True,
    envvar=f"{PREFIX}MAX_PSEUDONYMS_PER_BODY",
    help="Pseudonyms that a body may name where the intake asks for no key.",
)
@click.option(
    "--max-new-pseudonyms-per-hour",
    type=int,
    default=NEW_PER_HOUR,
    show_default=True,
    envvar=f"{PREFIX}MAX_NEW_PSEUDONYMS_PER_HOUR",
    help="Of each collection, device key and source class, over all servers; 0: any number.",
)
@click.option(
    "--source-classes",
    default="",
    envvar=f"{PREFIX}SOURCE_CLASSES",
    metavar="LABELS",
    help="What the proxy may put into X-Veilcount-Source-Class, separated by commas.",
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
    max_series_memory: int,
    max_store_memory: int | None,
    journal: Path | None,
    analysis_memory: int,
    dev: bool,
    max_pseudonyms_per_body: int,
    max_new_pseudonyms_per_hour: int,
    source_classes: str,
    as_json: bool,
) -> None:
    """Take reports and answer analysts, until SIGTERM."""
    settings = Settings(
        options.given(url),
        collections,
        dev,
        room,
        rate,
        workers,
        journal,
        max_pseudonyms_per_body,
        max_new_pseudonyms_per_hour,
        classes_in(source_classes),
        max_series_memory,
        max_store_memory,
        analysis_memory,
    )
    context.exit(serve(settings, ListenAddress.parse(bind), _json if as_json else _line))


def _line(ready: StartupSummary) -> None:
    """Say it to a person: past Python's own buffers, since workers are forked meanwhile."""
    os.write(2, f"{ready}\n".encode())


def _json(ready: StartupSummary) -> None:
    os.write(1, f"{json.dumps(ready.facts)}\n".encode())
