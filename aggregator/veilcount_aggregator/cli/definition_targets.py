"""Where definitions are pushed, listed and closed: in a store, or at a running server.

Both answer in the same words, so that a command need not know where it went.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec.structs import asdict

from veilcount_shared import Collection

from ..catalog.definitions import DefinitionSource, add_definitions, close_collection, load_catalog
from ..errors import SettingsError
from ..series.series import Series
from ..store import Store
from ..store.memory_limit import worst_case
from ..text.privacy_guarantees import epsilons
from . import options
from .http_client import Server
from .query_source import server_of

PATH = "/v1/collections"

Facts = dict[str, Any]

#: what is listed of a collection, by its newest definition
FIELDS = ("name", "fingerprint", "question", "unit", "from", "until", "epsilon", "closed", "series")


class Place(Protocol):
    """Somewhere with definitions."""

    def collections(self) -> list[Facts]:
        """Return what is listed of each collection."""

    def push(self, source: DefinitionSource) -> list[Facts]:
        """Take a file; return the series that were not known before."""

    def close(self, name: str) -> list[str]:
        """Take no more reports for a collection; return the fingerprints that are closed now."""


@dataclass(frozen=True, slots=True)
class AtStore:
    """A store that is at hand. Servers that run on it notice within a second."""

    store: Store

    def collections(self) -> list[Facts]:
        """Return what is listed of each collection."""
        return [_line(series) for series in load_catalog(self.store).by_name.values()]

    def push(self, source: DefinitionSource) -> list[Facts]:
        """Take a file; return the series that were not known before."""
        new = add_definitions(self.store, source, options.now(), "cli")
        return [_named(each) | {"counter_bytes": worst_case(each)} for each in new]

    def close(self, name: str) -> list[str]:
        """Take no more reports for a collection; return the fingerprints that are closed now."""
        if name not in load_catalog(self.store).by_name:
            fix = "no such collection: `veilcount collections list` shows them"
            raise SettingsError("name", name, fix)
        closed = close_collection(self.store, name, options.now(), "cli")
        return [series.fingerprint for series in closed]


@dataclass(frozen=True, slots=True)
class AtServer:
    """A running server, asked with an admin's key (to list: an analyst's)."""

    server: Server

    def collections(self) -> list[Facts]:
        """Return what is listed of each collection."""
        listed: list[Facts] = self.server.send("GET", PATH)["collections"]
        return [{field: line[field] for field in FIELDS} for line in listed]

    def push(self, source: DefinitionSource) -> list[Facts]:
        """Take a file; return the series that were not known before."""
        body = {"text": source.text, "files": dict(source.files)}
        new: list[Facts] = self.server.send("POST", PATH, json=body)["new"]
        return new

    def close(self, name: str) -> list[str]:
        """Take no more reports for a collection; return the fingerprints that are closed now."""
        closed: list[str] = self.server.order(name, "close", {})["closed"]
        return closed


@contextmanager
def place(store: str | None, url: str | None, key: str) -> Iterator[Place]:
    """Return the server or the store that was given."""
    server = server_of(store, url, key)
    if server is not None:
        yield AtServer(server)
        return
    with options.opened(store) as at_hand:
        yield AtStore(at_hand)


def _named(collection: Collection) -> Facts:
    return {"name": collection.name, "fingerprint": collection.fingerprint}


def _line(series: tuple[Series, ...]) -> Facts:
    newest = series[0].collection
    said = {
        "question": newest.question,
        "unit": newest.unit.value,
        "from": newest.start.isoformat(),
        "until": newest.until.isoformat(),
        "epsilon": asdict(epsilons(newest)),
        "closed": series[0].closed,
        "series": len(series),
    }
    return _named(newest) | said
