"""Options for the limits on the memory of counters, which `serve` and `doctor` share."""

from __future__ import annotations

import click

from ..settings import PREFIX
from .options import Command
from .param_types import BYTES

_series_memory = click.option(
    "--max-series-memory",
    type=BYTES,
    default="256MB",
    show_default=True,
    envvar=f"{PREFIX}MAX_SERIES_MEMORY",
    metavar="SIZE",
    help="Memory for the counters of one definition; beyond it, reports are full.",
)
_store_memory = click.option(
    "--max-store-memory",
    type=BYTES,
    envvar=f"{PREFIX}MAX_STORE_MEMORY",
    metavar="SIZE",
    help="Memory for all counters (default: 60 % of Redis's maxmemory; SQLite: any).",
)


def memory_limits(command: Command) -> Command:
    """Add the limits on the memory of counters; `doctor` takes the server's."""
    return _series_memory(_store_memory(command))
