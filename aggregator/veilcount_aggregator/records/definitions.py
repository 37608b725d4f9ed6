"""Definitions that were ever loaded: stored verbatim, and never removed.

A file is stored with the value lists it names, and parsed by the code that devices use too. The
newest file that names a collection decides its question.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from io import StringIO
from pathlib import Path

from veilcount_analysis.privacy.shuffled import require_covers
from veilcount_analysis.series.series import Series, utc_day
from veilcount_serving.errors import system_reason
from veilcount_shared import Collection, parse_collections
from veilcount_shared.collection.loading import NOT_UTF8
from veilcount_shared.errors import DefinitionError, TokenError
from veilcount_shared.tokens import PublicKey, check_key_list, decode_key_list, key_list_name

from ..errors import StoreUnfit
from ..store import Record, Records, RecordStore, Store
from ..store.records import update_records
from .audit_log import audit_record
from .counter_admission import require_memory

SOURCE = "source"
CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class DefinitionSource:
    """A definitions file, with the files it names, as text."""

    text: str
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The digest in its record's key."""
        return hashlib.sha256(self._bytes()).hexdigest()

    def collections(self) -> dict[str, Collection]:
        """Return its collections, or refuse it as a device would."""

        def read_values(name: str) -> list[str]:
            if name not in self.files:  # a path on our own disk is never read for a client
                raise DefinitionError(
                    "values_file", name, "send the file along with the definitions"
                )
            return _lines(self.files[name].removeprefix("\ufeff"))

        return parse_collections(self.text, read_values)

    def series(self) -> list[Series]:
        """Return the series of its collections, each with the keys of its tokens."""
        return [
            Series(collection, token_keys=self._token_keys(collection))
            for collection in self.collections().values()
        ]

    def _token_keys(self, collection: Collection) -> tuple[PublicKey, ...]:
        if collection.tokens is None:
            return ()
        name = key_list_name(collection.tokens)
        if name not in self.files:
            fix = f"send {name} along with the definitions"
            raise DefinitionError("tokens", collection.tokens, fix, collection=collection.name)
        try:
            keys = decode_key_list(self.files[name])
            return tuple(check_key_list(keys, collection.periods, collection.tokens))
        except TokenError as error:
            fix = f"{name}: {error}"
            raise DefinitionError(
                "tokens", collection.tokens, fix, collection=collection.name
            ) from error

    def _bytes(self) -> bytes:
        document = {"text": self.text, "files": dict(self.files)}
        return json.dumps(document, sort_keys=True, ensure_ascii=False).encode()

    def record(self, place: int) -> Record:
        """Return its record, the `place`-th to arrive."""
        return Record(SOURCE, f"{place:06}-{self.digest}", self._bytes())


def _lines(text: str) -> list[str]:
    """Return the lines of a text as a file's would be read."""
    return [line.rstrip("\n") for line in StringIO(text, newline=None)]


def read_source(path: Path) -> DefinitionSource:
    """Return a definitions file from the disk, with the value lists it names."""
    files: dict[str, str] = {}

    def read_values(name: str) -> list[str]:
        files[name] = _read_text(path.parent / name, "values_file", name)
        return _lines(files[name])

    text = _read_text(path, "file", path.name)
    for collection in parse_collections(text, read_values, path.name).values():
        if collection.tokens is not None:
            name = key_list_name(collection.tokens)
            files[name] = _read_text(path.parent / name, "tokens", name)
    return DefinitionSource(text, files)


def _read_text(path: Path, field: str, name: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeError as error:
        raise DefinitionError(field, name, NOT_UTF8) from error
    except (OSError, ValueError) as error:
        why = f"cannot be read ({system_reason(error)}): check the path and its permissions"
        raise DefinitionError(field, name, why) from error


@dataclass(frozen=True, slots=True)
class Catalog:
    """Every series by its fingerprint, and the series of each collection, the newest first."""

    series: Mapping[str, Series]
    by_name: Mapping[str, tuple[Series, ...]]

    @property
    def releases(self) -> bool:
        """Whether figures of a series leave as releases."""
        return any(series.collection.trust.releases for series in self.series.values())

    def of_apps(self, apps: Container[str]) -> Catalog:
        """Return the catalog of some apps: as if no others were defined."""
        all_series = self.series.items()
        series = {print_: one for print_, one in all_series if one.collection.app in apps}
        named = {
            name: tuple(one for one in definitions if one.fingerprint in series)
            for name, definitions in self.by_name.items()
        }
        return Catalog(series, {name: several for name, several in named.items() if several})

    @classmethod
    def build(cls, parsed: Mapping[str, Iterable[Series]], closed: Container[str]) -> Catalog:
        """Return the catalog of parsed sources, by record key, and of closed fingerprints."""
        series: dict[str, Series] = {}
        named: dict[str, list[str]] = {}
        for _, definitions in sorted(parsed.items()):
            for one_series in definitions:
                fingerprint = one_series.fingerprint
                series[fingerprint] = replace(one_series, closed=fingerprint in closed)
                prints = named.setdefault(one_series.collection.name, [])
                prints[:] = [fingerprint, *(print_ for print_ in prints if print_ != fingerprint)]
        return cls(
            series,
            {
                name: tuple(series[fingerprint] for fingerprint in prints)
                for name, prints in named.items()
            },
        )


def parse_catalog(sources: Records, closed: Container[str]) -> Catalog:
    """Return the catalog of sources as they are kept, and of closed fingerprints."""
    return Catalog.build({key: _series(key, text) for key, text in sources.items()}, closed)


def _series(key: str, value: bytes) -> tuple[Series, ...]:
    try:
        return tuple(DefinitionSource(**json.loads(value)).series())
    except DefinitionError as error:
        why = f"the kept definitions {key[:14]} cannot be read by this version: {error}"
        raise StoreUnfit(f"{why}; run the version that loaded them, or a newer one") from error


class CatalogReader:
    """Reads the catalog of one store, each source once. Thread-safe.

    A source's key holds the digest of its text, so what was parsed under a key stays right: a
    change of other records costs two lists of keys, a closed collection no parsing. What is
    remembered is what the store holds, and no more.
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._parsed: dict[str, tuple[Series, ...]] = {}
        self._closed: frozenset[str] = frozenset()
        self._built: tuple[frozenset[str], Catalog] = (frozenset(), Catalog({}, {}))

    def has_unparsed_sources(self) -> bool:
        """Whether the store holds a source that was not parsed here: that may take seconds."""
        return not self._store.record_keys(SOURCE) <= self._built[0]

    def read(self) -> Catalog:
        """Return the catalog as of now; the same object while no source or closing came."""
        keys, closed = self._store.record_keys(SOURCE), self._store.record_keys(CLOSED)
        with self._lock:
            self._parse(keys)
            return self._build(keys, closed)

    def read_parsed(self) -> Catalog:
        """Return the catalog without sources that were not parsed yet; it never waits."""
        closed = self._store.record_keys(CLOSED)
        keys, catalog = self._built
        return catalog if closed == self._closed else Catalog.build(self._of(keys), closed)

    def _parse(self, keys: frozenset[str]) -> None:
        new = keys - self._parsed.keys()
        for key, value in sorted(self._store.records_at(SOURCE, new).items()):
            self._parsed[key] = _series(key, value)

    def _build(self, keys: frozenset[str], closed: frozenset[str]) -> Catalog:
        if (keys, closed) != (self._built[0], self._closed):
            self._parsed = self._of(keys)
            self._closed, self._built = closed, (keys, Catalog.build(self._parsed, closed))
        return self._built[1]

    def _of(self, keys: frozenset[str]) -> dict[str, tuple[Series, ...]]:
        return {key: self._parsed[key] for key in keys if key in self._parsed}


def load_sources(store: RecordStore) -> list[DefinitionSource]:
    """Return all definitions files of a store, in the order in which they were loaded."""
    records = sorted(store.records(SOURCE).items())
    return [DefinitionSource(**json.loads(value)) for _, value in records]


ReadCatalog = Callable[[], Catalog]


def load_catalog(store: RecordStore) -> Catalog:
    """Return the catalog of a store; to read it repeatedly, keep a `CatalogReader`."""
    return CatalogReader(store).read()


def add_definitions(
    store: Store,
    source: DefinitionSource,
    now: datetime,
    actor: str,
    read: ReadCatalog | None = None,
    *,
    counter_limit: int | None = None,
) -> list[Collection]:
    """Store a definitions file; return its collections that are new.

    `read` returns the store's catalog as of now: a reader's, where one is kept. The counters must
    fit `counter_limit` bytes, or the engine's own limit where none is given.
    """
    supplied = source.series()
    for one_series in supplied:
        require_covers(one_series.collection)
    read = read or CatalogReader(store).read

    def decide() -> tuple[list[Record], list[Collection]]:
        stored_keys = store.record_keys(SOURCE)
        if any(key.endswith(source.digest) for key in stored_keys):
            return [], []
        current_series = read().series
        news = [
            one_series for one_series in supplied if one_series.fingerprint not in current_series
        ]
        require_memory(store, current_series, supplied, utc_day(now), counter_limit)
        names = ", ".join(one_series.collection.name for one_series in news) or "(texts only)"
        return [
            source.record(len(stored_keys)),
            audit_record(store, now, actor, "collections push", names),
        ], [one_series.collection for one_series in news]

    return update_records(store, decide)


def close_collection(
    store: RecordStore, name: str, now: datetime, actor: str, read: ReadCatalog | None = None
) -> list[Series]:
    """Close a collection under all of its definitions; return the series that were open."""
    read = read or CatalogReader(store).read

    def decide() -> tuple[list[Record], list[Series]]:
        still_open = [series for series in read().by_name.get(name, ()) if not series.closed]
        day = now.date().isoformat().encode()
        records = [Record(CLOSED, series.fingerprint, day) for series in still_open]
        if records:
            records.append(audit_record(store, now, actor, "collections close", name))
        return records, [replace(series, closed=True) for series in still_open]

    return update_records(store, decide)
