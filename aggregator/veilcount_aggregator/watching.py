"""What every worker has in memory of the shelf, never older than half a second.

A request looks at the generation if nobody has for a while; only if it changed is the shelf read.
So a definition that is pushed, a collection that is closed and a key that is revoked reach every
worker of every host by themselves. A store that does not answer leaves what was known in place for
reading reports: they cannot be committed then anyway.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from .definitions import CLOSED, SOURCE, Catalogue
from .errors import StoreError
from .keys import KIND, Keyring
from .store import Store

SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Known:
    """The shelf at one generation."""

    generation: int
    catalogue: Catalogue
    keyring: Keyring


class Watch:
    """The shelf as of now. For any thread."""

    def __init__(self, store: Store, seconds: Callable[[], float]) -> None:
        """Read it; `seconds` is a clock that never goes back."""
        self._store = store
        self._seconds = seconds
        self._lock = threading.Lock()
        self._looked = seconds()
        self._known = self._read(store.generation())

    def known(self) -> Known:
        """Return what the shelf holds, looked at within the last half second."""
        if self._seconds() - self._looked >= SECONDS and self._lock.acquire(blocking=False):
            try:
                with suppress(StoreError):
                    self.refresh()
            finally:
                self._looked = self._seconds()
                self._lock.release()
        return self._known

    def refresh(self) -> None:
        """Look now."""
        generation = self._store.generation()
        if generation != self._known.generation:
            self._known = self._read(generation)

    def _read(self, generation: int) -> Known:
        return Known(
            generation,
            Catalogue.of(self._store.records(SOURCE), self._store.records(CLOSED)),
            Keyring.of(self._store.records(KIND)),
        )
