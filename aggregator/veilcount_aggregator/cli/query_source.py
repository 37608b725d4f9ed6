"""Where answers come from: a store that is opened here, or a server that is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click
from click.core import ParameterSource

from ..catalog.definitions import load_catalog
from ..errors import SettingsError
from ..queries import CollectionNotFound, Snapshot
from ..series.series import utc_day
from ..settings import PREFIX
from . import options
from .http_client import Server
from .options import Command

url_option = click.option(
    "--url",
    "server",
    envvar=f"{PREFIX}URL",
    metavar="URL",
    help=f"A running server's address (default: {PREFIX}URL).",
)
key_option = click.option(
    "--key",
    envvar=f"{PREFIX}KEY",
    default="",
    metavar="KEY",
    help=f"An analyst's key for it; as {PREFIX}KEY it stays out of the shell's history.",
)


def place_options(command: Command) -> Command:
    """Add --store, --url and --key."""
    return options.store(url_option(key_option(command)))


def server_of(url: str | None, server: str | None, key: str) -> Server | None:
    """Return the server to ask; None: the store is to be opened. What was typed comes first."""
    typed = click.get_current_context().get_parameter_source
    store_typed = typed("url") is ParameterSource.COMMANDLINE
    server_typed = typed("server") is ParameterSource.COMMANDLINE
    if store_typed and server_typed:
        raise click.UsageError("give --store or --url, not both")
    if server and not store_typed:
        return Server(server, key)
    if not url:
        fix = f"give a store's URL or a server's --url, here or as {PREFIX}STORE or {PREFIX}URL"
        raise SettingsError("--store", "", fix)
    return None


@contextmanager
def snapshot(url: str | None) -> Iterator[Snapshot]:
    """Open a store to read answers from, as of today."""
    with options.opened(url) as store:
        held = Snapshot(load_catalog(store), store, utc_day(options.now()))
        try:
            yield held
        except CollectionNotFound as error:
            raise click.BadParameter(_meant(error, held), param_hint="NAME") from error


def _meant(error: CollectionNotFound, held: Snapshot) -> str:
    if error.near:
        return str(error)
    known = ", ".join(held.catalog.by_name)
    listed = f"there are {known}" if known else "there is none: `veilcount collections push FILE`"
    return f"{error}: {listed}"


def given(**words: object) -> dict[str, list[str]]:
    """Return options as parameters: each as it was typed, or not at all."""
    return {
        name.removesuffix("_"): [str(word) for word in listed]
        for name, listed in ((name, _listed(word)) for name, word in words.items())
        if listed
    }


def _listed(word: object) -> list[object]:
    if word is None:
        return []
    return list(word) if isinstance(word, tuple | list) else [word]
