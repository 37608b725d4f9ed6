"""A store that counts which records are read from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from veilcount_aggregator.store import Records, Store


class CountedReads:
    """A store, and how many records (or their keys) of each kind were read through it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reads: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def records(self, kind: str) -> Records:
        return self._counted(kind, self._store.records(kind))

    def records_at(self, kind: str, keys: Collection[str]) -> Records:
        return self._counted(kind, self._store.records_at(kind, keys))

    def record_keys(self, kind: str) -> frozenset[str]:
        """Count keys like records."""
        found = self._store.record_keys(kind)
        self.reads += Counter({kind: len(found)})
        return found

    def _counted(self, kind: str, found: Records) -> Records:
        self.reads += Counter({kind: len(found)})
        return found
