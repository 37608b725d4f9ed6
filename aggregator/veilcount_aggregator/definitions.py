"""Definitions that were ever loaded: kept word for word, known for ever.

A file is kept with the value lists it names, and read again by the code that a device uses too. The
newest file that names a collection says its question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from io import StringIO
from pathlib import Path

from veilcount_shared import Collection, parse_collections
from veilcount_shared.errors import DefinitionError

from .audit import entry
from .errors import StoreUnfit
from .series import Series
from .shelf import change
from .store import Record, Records, Store

SOURCE = "source"
CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Source:
    """A definitions file, with the files it names, as text."""

    text: str
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The name it is kept under."""
        return hashlib.sha256(self._bytes()).hexdigest()

    def collections(self) -> dict[str, Collection]:
        """Return its collections, or refuse it as a device would."""
        return dict(_parsed(self.text, tuple(sorted(self.files.items()))))

    def kept_collections(self) -> dict[str, Collection]:
        """Return its collections, as the release that accepted it understood them."""
        return dict(_parsed(self.text, tuple(sorted(self.files.items())), legacy=True))

    def _bytes(self) -> bytes:
        kept = {"text": self.text, "files": dict(self.files)}
        return json.dumps(kept, sort_keys=True, ensure_ascii=False).encode()

    def record(self, place: int) -> Record:
        """Return the source as it is kept, in order of arrival."""
        return Record(SOURCE, f"{place:06}-{self.digest}", self._bytes())


@lru_cache(maxsize=32)  # a list of a million values takes seconds, and each change reads it again
def _parsed(
    text: str, files: tuple[tuple[str, str], ...], *, legacy: bool = False
) -> dict[str, Collection]:
    given = dict(files)

    def read_values(name: str) -> list[str]:
        if (
            name not in given
        ):  # a path on the aggregator's own disk is nothing that may be asked for
            raise DefinitionError("values_file", name, "send the file along with the definitions")
        return _lines(given[name].removeprefix("\ufeff"))

    return parse_collections(text, read_values, legacy=legacy)


def _lines(text: str) -> list[str]:
    """Return the lines of a text as a file's would be read."""
    return [line.rstrip("\n") for line in StringIO(text, newline=None)]


def read_source(path: Path) -> Source:
    """Return a definitions file from the disk, with the value lists it names."""
    read: dict[str, str] = {}

    def read_values(name: str) -> list[str]:
        try:
            read[name] = (path.parent / name).read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            raise DefinitionError("values_file", name, f"cannot be read: {error}") from error
        return _lines(read[name])

    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise DefinitionError("file", path.name, f"cannot be read: {error}") from error
    parse_collections(text, read_values, path.name)
    return Source(text, read)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Every series by its fingerprint, and the series of each collection, the newest first."""

    series: Mapping[str, Series]
    named: Mapping[str, tuple[Series, ...]]

    @classmethod
    def of(cls, sources: Records, closed: Records) -> Catalogue:
        """Read what is kept."""
        series: dict[str, Series] = {}
        named: dict[str, list[str]] = {}
        for key, value in sorted(sources.items()):
            for collection in _collections(key, value):
                fingerprint = collection.fingerprint
                series[fingerprint] = Series(collection, closed=fingerprint in closed)
                prints = named.setdefault(collection.name, [])
                prints[:] = [fingerprint, *(each for each in prints if each != fingerprint)]
        return cls(
            series,
            {name: tuple(series[each] for each in prints) for name, prints in named.items()},
        )


def _collections(key: str, value: bytes) -> Iterable[Collection]:
    try:
        return Source(**json.loads(value)).kept_collections().values()
    except DefinitionError as error:
        why = f"the kept definitions {key[:14]} cannot be read by this version: {error}"
        raise StoreUnfit(f"{why}; run the version that loaded them, or a newer one") from error


def catalogue(store: Store) -> Catalogue:
    """Return what a store knows."""
    return Catalogue.of(store.records(SOURCE), store.records(CLOSED))


def push(store: Store, source: Source, now: datetime, who: str) -> list[Collection]:
    """Keep a file; return its collections that were not known before."""
    given = source.collections()

    def decide() -> tuple[list[Record], list[Collection]]:
        kept = store.records(SOURCE)
        if any(key.endswith(source.digest) for key in kept):
            return [], []
        known = Catalogue.of(kept, {}).series
        news = [each for each in given.values() if each.fingerprint not in known]
        names = ", ".join(each.name for each in news) or "(texts only)"
        return [
            source.record(len(kept)),
            entry(store, now, who, "collections push", names),
        ], news

    return change(store, decide)


def close(store: Store, name: str, now: datetime, who: str) -> list[Series]:
    """Take no more reports for a collection, under any of its definitions; return those closed."""

    def decide() -> tuple[list[Record], list[Series]]:
        still_open = [
            series for series in catalogue(store).named.get(name, ()) if not series.closed
        ]
        day = now.date().isoformat().encode()
        records = [Record(CLOSED, series.fingerprint, day) for series in still_open]
        if records:
            records.append(entry(store, now, who, "collections close", name))
        return records, [replace(series, closed=True) for series in still_open]

    return change(store, decide)
