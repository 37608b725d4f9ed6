"""`veilcount dev`: an aggregator for whoever builds an app, which shows each report it receives."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from veilcount_serving.errors import SettingsError
from veilcount_serving.listen_address import ListenAddress
from veilcount_serving.posix import require_posix
from veilcount_serving.worker_processes import StartupSummary
from veilcount_shared import load_collections

from ...intake.live_reports import LiveEntry
from ...records.api_keys import Role
from ...records.sessions import create_link, link_url
from ...server.development import serve_development
from ...server.development_devices import MAX_DEVICES
from ...server.development_shuffler import DevelopmentShuffler
from ...settings import PREFIX, Settings
from ...store import open_store
from ...store.store_url import redact_url
from . import options
from .development_stores import temporary_store
from .main import escape_controls
from .new import FILE
from .serve import ADDRESS

TEMPORARY = "temporary, removed at the end"
SHUFFLER_SECONDS = 10
COLUMNS = "{:8}  {:14}  {:11}  {:9}  {}"


@click.command("dev")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--store",
    "url",
    type=options.StoreUrl(),
    metavar="URL",
    help=f"URL of a store to keep (default: {TEMPORARY}).",
)
@options.bind(ADDRESS, "host:port or [host]:port.", envvar=f"{PREFIX}BIND")
@click.option(
    "--shuffler",
    is_flag=True,
    help="Run a shuffler too, at the next port: its crowds leave after ten seconds.",
)
@click.option(
    "--devices",
    type=click.IntRange(0, MAX_DEVICES),
    default=0,
    metavar="N",
    help="Have N simulated devices answer each definition, so that pages show findings.",
)
@options.as_json
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    files: tuple[Path, ...],
    url: str | None,
    bind: str,
    shuffler: bool,
    devices: int,
    as_json: bool,
) -> None:
    """Accept reports of FILES (default: collections.toml), and show each with its verdict.

    Edited definitions are reloaded. Reports of Client(..., development=True) are accepted, and no
    device key is required: not for reports of real people. It runs until Ctrl-C.
    """
    files = files or _default()
    address = ListenAddress.parse(bind)
    if shuffler:
        require_posix("a shuffler")
    if shuffler and url:
        raise SettingsError("--shuffler", "", "its crowds leave once: give no --store with it")
    if devices and url:
        fix = "simulated reports cannot be removed from a store: give no --store with them"
        raise SettingsError("--devices", str(devices), fix)
    with nullcontext(url) if url else temporary_store() as store:
        facts = {
            "development": True,
            "definitions": {str(file): list(load_collections(file)) for file in files},
            "store": redact_url(store),
            "temporary": not url,
            "url": str(address),
            "log_in": link_url(str(address), _link(store)),
            "live": f"{address}/live",
            "devices": devices,
        }
        if shuffler:
            facts |= context.with_resource(_shuffler(files, store, address))
        announce = partial(_announce, facts, as_json=as_json)
        show = _show_json if as_json else _show
        settings = Settings(store, files, dev=True)
        context.exit(serve_development(settings, address, announce, show, devices=devices))


def _default() -> tuple[Path, ...]:
    if not Path(FILE).exists():
        raise SettingsError("FILES", FILE, "no such file: `veilcount new` writes one")
    return (Path(FILE),)


@contextmanager
def _shuffler(
    files: tuple[Path, ...], store: str, address: ListenAddress
) -> Iterator[dict[str, str]]:
    """Run a shuffler at the next port; yield what a client needs of it."""
    collections = {
        name: collection for file in files for name, collection in load_collections(file).items()
    }
    bind = ListenAddress(address.host, address.port + 1)
    bind.check()
    with TemporaryDirectory(prefix="veilcount-dev-") as folder:
        made = DevelopmentShuffler(Path(folder), bind, SHUFFLER_SECONDS)
        made.make(store, str(address), collections, options.now())
        with made.served():
            yield {"shuffler": str(bind), "relay_keys": str(made.keys)}


def _link(url: str) -> str:
    with closing(open_store(url, make=True, alone=True)) as store:
        return create_link(store, Role.ADMIN, options.now())


def _announce(facts: dict[str, Any], _: StartupSummary, *, as_json: bool) -> None:
    _write([json.dumps(facts)] if as_json else _lines(facts))


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    first = next(iter(facts["definitions"]))
    yield "DEVELOPMENT server: not for reports of real people. Ctrl-C ends it."
    for file, names in facts["definitions"].items():
        yield f"definitions  {file}: {', '.join(names)} (reloaded when edited)"
    note = f" ({TEMPORARY})" if facts["temporary"] else ""
    yield f"store        {facts['store']}{note}"
    yield f'client       Client("{facts["url"]}", collections="{first}", development=True)'
    if "shuffler" in facts:
        route = f'shuffler="{facts["shuffler"]}", relay_keys="{facts["relay_keys"]}"'
        yield f"shuffler     a period's batch leaves {SHUFFLER_SECONDS} s after its first report:"
        yield f"             Client(..., {route})"
    if facts["devices"]:
        yield f"devices      {facts['devices']:,} are simulated: what they answer is made up"
    yield f"log in       {facts['log_in']} (once, within 15 minutes)"
    yield f"live view    {facts['live']}, and here:"
    yield ""
    yield COLUMNS.format("UTC", "collection", "verdict", "pseudonym", "message")


def _show(entry: LiveEntry) -> None:
    cells = entry.time, entry.collection, entry.verdict, entry.pseudonym, entry.message
    _write([COLUMNS.format(*cells)])


def _show_json(entry: LiveEntry) -> None:
    _write([json.dumps(asdict(entry))])


def _write(lines: Iterable[str]) -> None:
    click.echo("\n".join(map(escape_controls, lines)))
