"""Memory as an engine, for tests: it is offered to no operator."""

from __future__ import annotations

from pathlib import Path

from veilcount_serving.errors import SettingsError

from ...errors import StoreUnfit
from ..engine import Engine
from .store import MemoryStore


class MemoryEngine(Engine):
    """The engine of one process. Whoever opens a URL again there has the same store."""

    schemes = frozenset({"memory"})

    def __init__(self) -> None:
        self._stores: dict[str, MemoryStore] = {}

    def open(self, url: str, *, make: bool, heights: Path | None) -> MemoryStore:
        if make:
            return self._stores.setdefault(url, MemoryStore())
        if url not in self._stores:
            raise StoreUnfit(f"{url}: no store there: this process has made none")
        return self._stores[url]

    def back_up(self, url: str, part: Path) -> None:
        raise SettingsError("store", url, "a store in memory has no backup: copy it to another")
