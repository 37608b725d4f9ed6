"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from ..errors import SettingsError
from ..settings import PREFIX
from ..store import Store, open_store
from .given import BYTES

Command = TypeVar("Command", bound=Callable[..., Any])

store = click.option(
    "--store",
    "url",
    envvar=f"{PREFIX}STORE",
    metavar="URL",
    help=f"Where everything is kept: sqlite:////path.db, redis://... (default: {PREFIX}STORE).",
)
as_json = click.option("--json", "as_json", is_flag=True, help="For programs.")
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


def given(url: str | None) -> str:
    """Return the store's URL, or say how to give it."""
    if not url:
        raise SettingsError("--store", "", f"give the store's URL, here or as {PREFIX}STORE")
    return url


@contextmanager
def opened(url: str | None, *, make: bool = False) -> Iterator[Store]:
    """Open a store for one command."""
    store = open_store(given(url), make=make)
    try:
        yield store
    finally:
        store.close()


def now() -> datetime:
    """Return the instant of a command."""
    return datetime.now(UTC)
