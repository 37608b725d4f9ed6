"""What every worker has in memory of the shelf, never older than half a second.

A request looks at the generation if nobody has for a while; only if it changed is the shelf read.
So a definition that is pushed, a collection that is closed and a key that is revoked reach every
worker of every host by themselves. A store that does not answer leaves what was known in place for
reading reports: they cannot be committed then anyway.

A request never parses definitions: a list of a million values takes seconds. It sees keys and
closed collections at once, and new definitions when a thread of their own has parsed them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from .definitions import Catalogue, CatalogueReader
from .errors import StoreError
from .keys import KIND, Keyring
from .store import Store

SECONDS = 0.5
PARSER = "veilcount-parser"


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
        self.catalogue = CatalogueReader(store)
        self._lock = threading.Lock()
        self._refreshing = threading.Lock()
        self._parser: threading.Thread | None = None
        self._looked = seconds()
        self._known = self._read(store.generation())

    def known(self) -> Known:
        """Return what the shelf holds, looked at within the last half second."""
        if self._seconds() - self._looked >= SECONDS and self._lock.acquire(blocking=False):
            try:
                with suppress(StoreError):
                    self._look()
            finally:
                self._looked = self._seconds()
                self._lock.release()
        return self._known

    def refresh(self) -> None:
        """Look now, and wait until what is new is parsed."""
        with self._refreshing:
            generation = self._store.generation()
            if generation != self._known.generation:
                self._known = self._read(generation)

    def _look(self) -> None:
        """Look now; leave new definitions to a thread, and know everything else at once."""
        generation = self._store.generation()
        if generation == self._known.generation:
            return
        if not self.catalogue.has_unparsed():
            self.refresh()
            return
        # Under the old generation: the next look finds what is still missing.
        known, keyring = self.catalogue.read_parsed(), Keyring.of(self._store.records(KIND))
        self._known = replace(self._known, catalogue=known, keyring=keyring)
        if self._parser is None or not self._parser.is_alive():
            self._parser = threading.Thread(target=self._parse, name=PARSER, daemon=True)
            self._parser.start()

    def _parse(self) -> None:
        with suppress(StoreError):  # looked at again within half a second
            self.refresh()

    def _read(self, generation: int) -> Known:
        return Known(generation, self.catalogue.read(), Keyring.of(self._store.records(KIND)))
