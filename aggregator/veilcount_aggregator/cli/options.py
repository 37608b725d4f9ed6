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

Command = TypeVar("Command", bound=Callable[..., Any])

store = click.option(
    "--store",
    "url",
    envvar=f"{PREFIX}STORE",
    metavar="URL",
    help=f"Where everything is kept: sqlite:////path.db, redis://... (default: {PREFIX}STORE).",
)
as_json = click.option("--json", "as_json", is_flag=True, help="For programs.")


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
