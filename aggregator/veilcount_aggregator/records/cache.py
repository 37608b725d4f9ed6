"""A worker's cache of definitions and keys, never older than half a second.

A request compares the generation of the store's records if nobody has for half a second; only the
kinds of records that changed are read again. So a new definition, a closed collection and a revoked
key reach every worker of every host, and a log-in makes none of them read definitions. While
records cannot be read, the cache stays in force for reports of shards that answer; its age is
known, since a key that was revoked meanwhile must not be accepted for ever.

Requests of devices never parse definitions: a list of a million values takes seconds. They see keys
and closed collections at once, and new definitions once a background thread has parsed them.
Requests of analysts compare first: they see what another process has just changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ..errors import StoreError, StoreUnavailable
from ..store import Store
from .api_keys import KIND, ApiKeys, load_api_keys
from .definitions import CLOSED, SOURCE, Catalog, CatalogReader, parse_catalog
from .gateway_keys import KIND as GATEWAY
from .gateway_keys import gateway_secrets

SECONDS = 0.5
PARSING_SECONDS = 2.0  # that an analyst's request waits while another thread parses definitions
KEYS_SECONDS = 5.0  # how old the keys of analysts and admins, and sessions, may be
LIMIT_SECRET = "secret"  # noqa: S105 - a kind of records: what the limit of pseudonyms is drawn with
REPLICATED = (SOURCE, CLOSED, KIND, LIMIT_SECRET, GATEWAY)  # what the intake needs
DEVICE_KEYS_SECONDS = 900.0  # those of devices, which open nothing but the intake
PARSER = "veilcount-parser"


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """Definitions and keys at one generation of the store's records."""

    generation: int
    generations: Mapping[str, int]  # of each kind of record
    catalog: Catalog
    api_keys: ApiKeys
    gateway_secrets: Mapping[int, X25519PrivateKey]  # by the id that requests name

    def has_news(self, generations: Mapping[str, int], *kinds: str) -> bool:
        """Whether records of one of these kinds have changed since."""
        return any(generations.get(kind) != self.generations.get(kind) for kind in kinds)


class CatalogCache:
    """Definitions and keys as of now. Thread-safe."""

    def __init__(self, store: Store, seconds: Callable[[], float]) -> None:
        """Read the records; `seconds` is a monotonic clock."""
        self._store = store
        self._seconds = seconds
        self.catalog = CatalogReader(store)
        self._lock = threading.Lock()
        self._refreshing = threading.Lock()
        self._parser: threading.Thread | None = None
        self._looked = self._read_at = seconds()
        try:
            self._known = self._read_changed(store.generation(), None)
        except StoreUnavailable:
            self._known = self._read_replica()
            self._read_at -= KEYS_SECONDS + SECONDS  # how old it is, is not known: no key of these

    def known(self) -> CatalogSnapshot:
        """Return the cache, compared with the store within the last half second."""
        if self._seconds() - self._looked >= SECONDS and self._lock.acquire(blocking=False):
            try:
                with suppress(StoreError):
                    self._look()
            finally:
                self._looked = self._seconds()
                self._lock.release()
        return self._known

    @property
    def current(self) -> CatalogSnapshot:
        """The cache as it is: whoever must not wait for the store has others refresh it."""
        return self._known

    def refresh_if_possible(self) -> None:
        """Compare with the store now, unless another thread does so for long; without a store, what
        was read last stays in force.
        """
        if self._refreshing.acquire(timeout=PARSING_SECONDS):
            try:
                with suppress(StoreError):
                    self._refresh()
            finally:
                self._refreshing.release()

    def refresh(self) -> None:
        """Compare with the store now, and wait until new definitions are parsed."""
        with self._refreshing:
            self._refresh()

    def _refresh(self) -> None:
        began = self._seconds()
        generation = self._store.generation()
        if generation != self._known.generation:
            self._known = self._read_changed(generation, self._known)
        self._read_at = began

    def is_fresh(self, most_seconds: float) -> bool:
        """Whether the records were read within so many seconds; waits for whoever reads now."""
        if self._seconds() - self._read_at <= most_seconds:
            return True
        with self._lock:
            if self._seconds() - self._looked >= SECONDS:
                with suppress(StoreError):
                    self._look()
                self._looked = self._seconds()
        return self._seconds() - self._read_at <= most_seconds

    def require_fresh(self, most_seconds: float) -> None:
        """Raise if the records could not be read for so long."""
        if not self.is_fresh(most_seconds):
            raise _stale(most_seconds)

    def require_recent(self, most_seconds: float) -> None:
        """Raise if the records were not read for so long, without waiting for them."""
        if self._seconds() - self._read_at > most_seconds:
            raise _stale(most_seconds)

    def replicate(self) -> bool:
        """Have a copy of the records on every shard, for processes that start without them."""
        return self._store.replicate(REPLICATED)

    def _look(self) -> None:
        """Compare now; leave new definitions to a thread, and read everything else at once."""
        began = self._seconds()
        generation = self._store.generation()
        if generation == self._known.generation:
            self._read_at = began
            return
        if not self._known.has_news(self._store.generations(), SOURCE) or (
            not self.catalog.has_unparsed_sources()
        ):
            self.refresh()
            return
        # Under the old generation: the next look finds what is still missing.
        self._known = replace(
            self._known,
            catalog=self.catalog.read_parsed(),
            api_keys=load_api_keys(self._store),
            gateway_secrets=gateway_secrets(self._store.records(GATEWAY)),
        )
        self._read_at = began
        if self._parser is None or not self._parser.is_alive():
            self._parser = threading.Thread(target=self._parse, name=PARSER, daemon=True)
            self._parser.start()

    def _parse(self) -> None:
        self.refresh_if_possible()  # else within half a second

    def _read_replica(self) -> CatalogSnapshot:
        generation, sources = self._store.replica(SOURCE)
        (_, closed), (_, keys) = self._store.replica(CLOSED), self._store.replica(KIND)
        return CatalogSnapshot(
            generation,
            {},
            parse_catalog(sources, closed),
            ApiKeys.from_records(keys),
            gateway_secrets(self._store.replica(GATEWAY)[1]),
        )

    def _read_changed(self, generation: int, known: CatalogSnapshot | None) -> CatalogSnapshot:
        """Read the kinds of records that changed; their generations are read before them."""
        generations = self._store.generations()
        if known is None or known.has_news(generations, SOURCE, CLOSED):
            catalog = self.catalog.read()
        else:
            catalog = known.catalog
        if known is None or known.has_news(generations, KIND):
            keys = load_api_keys(self._store)
        else:
            keys = known.api_keys
        if known is None or known.has_news(generations, GATEWAY):
            secrets: Mapping[int, X25519PrivateKey] = gateway_secrets(self._store.records(GATEWAY))
        else:
            secrets = known.gateway_secrets
        return CatalogSnapshot(generation, generations, catalog, keys, secrets)


def _stale(seconds: float) -> StoreUnavailable:
    return StoreUnavailable(
        f"keys and definitions could not be read for {seconds:g} s: no key is taken"
    )
