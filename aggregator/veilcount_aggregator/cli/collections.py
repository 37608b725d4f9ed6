"""`veilcount collections push | list | close`: in a store, or at a running server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from msgspec.structs import asdict

from veilcount_shared import Collection

from ..catalog.definitions import (
    DefinitionSource,
    add_definitions,
    close_collection,
    load_catalog,
    read_source,
)
from ..errors import SettingsError
from ..series.series import Series
from ..store import Store
from ..store.memory_limit import worst_case
from ..text import number_format
from ..text.number_format import format_bytes
from ..text.privacy_guarantees import epsilons
from . import options
from .output import print_json, print_lines, print_result, print_table
from .query_source import Server, server_of, source_options

PATH = "/v1/collections"

Facts = dict[str, Any]

#: what is listed of a collection, by its newest definition
FIELDS = ("name", "fingerprint", "question", "unit", "from", "until", "epsilon", "closed", "series")


@click.group("collections")
def command() -> None:
    """Push, list and close collection definitions."""


@command.command("push")
@click.argument("file", type=click.Path(path_type=Path))
@source_options
@options.as_json
def push_file(file: Path, *, url: str | None, server: str | None, key: str, as_json: bool) -> None:
    """Push a definitions file; every worker accepts its reports within a second."""
    source = read_source(file)
    with _target(url, server, key) as target:
        new = target.push(source)
    if as_json:
        print_json({"new": new})
    elif new:
        columns = ("new", "fingerprint", "max counter memory")
        print_table(
            columns,
            (
                (each["name"], each["fingerprint"], format_bytes(each["counter_bytes"]))
                for each in new
            ),
        )
    else:
        print_lines(["nothing new: all definitions were known"])


@command.command("list")
@source_options
@options.as_json
def list_all(*, url: str | None, server: str | None, key: str, as_json: bool) -> None:
    """List all collections, each by its newest definition."""
    with _target(url, server, key) as target:
        lines = target.collections()
    if as_json:
        print_json(lines)
        return
    figures = ("event", "day", "user", "by")
    columns = ("name", "fingerprint", "unit", "from", "until", *figures, "state")
    print_table(
        columns,
        (
            (
                line["name"],
                line["fingerprint"][:12],
                *(line[field] for field in ("unit", "from", "until")),
                *(line["epsilon"][field] for field in ("event", "day", "user")),
                number_format.adjacency(line["epsilon"]["adjacency"]),
                "closed" if line["closed"] else "open",
            )
            for line in lines
        ),
    )


@command.command("close")
@options.name_in_store
@source_options
@options.as_json
def close(name: str, *, url: str | None, server: str | None, key: str, as_json: bool) -> None:
    """Close a collection: no more reports, under any of its definitions."""
    with _target(url, server, key) as target:
        closed = target.close(name)
    line = f"{name} is closed" if closed else f"{name} was closed already"
    print_result({"closed": closed}, [line], as_json=as_json)


# -- stores and servers of definitions -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoreTarget:
    """An open store. Servers that run on it load changes within a second."""

    store: Store

    def collections(self) -> list[Facts]:
        """Return the listing of each collection."""
        return [_line(series) for series in load_catalog(self.store).by_name.values()]

    def push(self, source: DefinitionSource) -> list[Facts]:
        """Store the definitions of a file; return the new series."""
        new = add_definitions(self.store, source, options.now(), "cli")
        return [_named(each) | {"counter_bytes": worst_case(each)} for each in new]

    def close(self, name: str) -> list[str]:
        """Close a collection for reports; return the fingerprints that were open."""
        if name not in load_catalog(self.store).by_name:
            fix = "no such collection: `veilcount collections list` shows them"
            raise SettingsError("name", name, fix)
        closed = close_collection(self.store, name, options.now(), "cli")
        return [series.fingerprint for series in closed]


@dataclass(frozen=True, slots=True)
class ServerTarget:
    """A running server; pushing and closing need an admin key, listing an analyst key."""

    server: Server

    def collections(self) -> list[Facts]:
        """Return the listing of each collection."""
        listed: list[Facts] = self.server.send("GET", PATH)["collections"]
        return [{field: line[field] for field in FIELDS} for line in listed]

    def push(self, source: DefinitionSource) -> list[Facts]:
        """Store the definitions of a file; return the new series."""
        body = {"text": source.text, "files": dict(source.files)}
        new: list[Facts] = self.server.send("POST", PATH, json=body)["new"]
        return new

    def close(self, name: str) -> list[str]:
        """Close a collection for reports; return the fingerprints that were open."""
        closed: list[str] = self.server.post(name, "close", {})["closed"]
        return closed


@contextmanager
def _target(store: str | None, url: str | None, key: str) -> Iterator[StoreTarget | ServerTarget]:
    """Yield the server or the open store."""
    server = server_of(store, url, key)
    if server is not None:
        yield ServerTarget(server)
        return
    with options.opened(store) as opened:
        yield StoreTarget(opened)


def _named(collection: Collection) -> Facts:
    return {"name": collection.name, "fingerprint": collection.fingerprint}


def _line(series: tuple[Series, ...]) -> Facts:
    newest = series[0].collection
    facts = {
        "question": newest.question,
        "unit": newest.unit.value,
        "from": newest.start.isoformat(),
        "until": newest.until.isoformat(),
        "epsilon": asdict(epsilons(newest)),
        "closed": series[0].closed,
        "series": len(series),
    }
    return _named(newest) | facts
