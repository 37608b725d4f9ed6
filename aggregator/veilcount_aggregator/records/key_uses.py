"""The keys that were used today in one worker, until the next tick writes their day of use."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from ..errors import StoreError
from ..store import RecordStore
from .api_keys import ApiKey, record_key_use


class KeyUses:
    """Collects uses, so that no request waits for a write or makes one. For any thread."""

    def __init__(self) -> None:
        self._days: dict[str, str] = {}  # by a key's id: the day of its last use here
        self._unwritten: dict[str, ApiKey] = {}

    def add(self, key: ApiKey, day: str) -> None:
        """Add a use, unless one of this day is known."""
        if key.used < day and self._days.get(key.id) != day:
            self._days[key.id] = day
            self._unwritten[key.id] = key

    def write(self, store: RecordStore, now: datetime) -> None:
        """Write the day to each key that was used; what cannot be written is left out."""
        keys, self._unwritten = self._unwritten, {}
        for key in keys.values():
            with suppress(StoreError):
                record_key_use(store, key, now)
