"""Names of collections, completed while a person types: of the file, or of the store, if cheap."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click

from veilcount_shared import load_collections
from veilcount_shared.errors import VeilcountError

from ..catalog.definitions import load_catalog
from . import options

CHEAP = "sqlite:"  # a store that is away must not keep a prompt waiting


def of_file(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the collections of the definitions file that was typed before."""
    file = context.params.get("file")
    if not file:
        return []
    with suppress(VeilcountError):
        return _beginning(load_collections(Path(file)), incomplete)
    return []


def of_store(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the collections of the store that was typed, or set as a variable."""
    url = context.params.get("url") or ""
    if not url.startswith(CHEAP):
        return []
    with suppress(VeilcountError), options.opened(url) as store:
        return _beginning(load_catalog(store).by_name, incomplete)
    return []


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
