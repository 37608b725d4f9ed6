"""What an operator sets: flags of `veilcount serve`, or variables for any other server.

| flag          | variable              | what                                                     |
|---------------|-----------------------|----------------------------------------------------------|
| --store       | VEILCOUNT_STORE       | where everything is kept                                 |
| --collections | VEILCOUNT_COLLECTIONS | definitions to load at start, separated as paths are     |
| --dev         | VEILCOUNT_DEV         | 1: take test batches too                                 |
| --room        | VEILCOUNT_ROOM        | new pseudonyms that a period of a collection may bring   |
| --rate        | VEILCOUNT_RATE        | requests a second that each key may send; 0: any number  |
| --workers     | VEILCOUNT_WORKERS     | processes that share the rate                            |
| --journal     | VEILCOUNT_JOURNAL     | where central releases are also written, line by line:   |
|               |                       | beside a SQLite file unless told; needed with Redis      |
| --max-pseudonyms-per-body         | pseudonyms that a body may name, where no key is asked for   |
| --max-new-pseudonyms-per-hour     | of each collection, device key and source class, over all    |
|                                   | servers of a store; 0: as many as the period has room for    |
| --source-classes                  | what the proxy may put into `X-Veilcount-Source-Class`       |

The variables of the last three are named likewise: VEILCOUNT_MAX_PSEUDONYMS_PER_BODY, and so on.

Limits on the memory of counters, beyond which reports are answered `full`: `--max-series-memory`
(VEILCOUNT_MAX_SERIES_MEMORY, 256MB) of each definition, and `--max-store-memory`
(VEILCOUNT_MAX_STORE_MEMORY; of Redis 60 % of its maxmemory) of all together.
`--analysis-memory` (VEILCOUNT_ANALYSIS_MEMORY): MB that the analysis process may take for its data;
0: any number.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from veilcount_shared.report import MAX_REPORTS, OPEN_BODY_PSEUDONYMS

from .errors import SettingsError
from .store.memory_limit import SERIES_MEMORY
from .text.byte_sizes import FORM as BYTES_FORM
from .text.byte_sizes import parse_bytes

PREFIX = "VEILCOUNT_"
ROOM = 10_000_000
#: a tenth of a period's: of ten million devices a day, hardly more come in the busiest hour
NEW_PER_HOUR = 1_000_000
MOST_CLASSES = 64
_CLASS = re.compile("[a-z0-9-]{1,20}")
ANALYSIS_MEMORY = 1024
LEAST_ANALYSIS_MEMORY = 512  # idle, its code and its threads take more than 300


@dataclass(frozen=True, slots=True)
class Settings:
    """What one deployment runs with."""

    store: str
    collections: tuple[Path, ...] = ()
    dev: bool = False
    room: int = ROOM
    rate: int = 0
    workers: int = 1
    journal: Path | None = None
    max_pseudonyms_per_body: int = OPEN_BODY_PSEUDONYMS
    max_new_pseudonyms_per_hour: int = NEW_PER_HOUR
    source_classes: tuple[str, ...] = ()
    max_series_memory: int = SERIES_MEMORY  # bytes
    max_store_memory: int | None = None  # None: the store's own limit
    analysis_memory: int = ANALYSIS_MEMORY

    def __post_init__(self) -> None:
        """Refuse what nobody can run with."""
        if self.room < 1:
            raise SettingsError("room", str(self.room), "give 1 or more")
        if self.rate < 0:
            raise SettingsError("rate", str(self.rate), "give 0 (any number) or more")
        if self.workers < 1:
            raise SettingsError("workers", str(self.workers), "give 1 or more")
        if not 1 <= self.max_pseudonyms_per_body <= MAX_REPORTS:
            given = str(self.max_pseudonyms_per_body)
            raise SettingsError("max-pseudonyms-per-body", given, f"give 1 to {MAX_REPORTS:,}")
        if self.max_new_pseudonyms_per_hour < 0:
            given = str(self.max_new_pseudonyms_per_hour)
            raise SettingsError("max-new-pseudonyms-per-hour", given, "give 0 (any number) or more")
        _check_classes(self.source_classes)
        for name in ("max_series_memory", "max_store_memory"):
            if (size := getattr(self, name)) is not None and size < 1:
                raise SettingsError(name, str(size), BYTES_FORM)
        if self.analysis_memory and self.analysis_memory < LEAST_ANALYSIS_MEMORY:
            fix = f"give {LEAST_ANALYSIS_MEMORY} (MB) or more, or 0 (any number)"
            raise SettingsError("analysis-memory", str(self.analysis_memory), fix)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Settings:
        """Read the variables."""
        store = environ.get(f"{PREFIX}STORE", "")
        if not store:
            raise SettingsError(f"{PREFIX}STORE", "", "give the store's URL: sqlite:////path.db")
        files = environ.get(f"{PREFIX}COLLECTIONS", "")
        journal = environ.get(f"{PREFIX}JOURNAL", "")
        return cls(
            store,
            tuple(map(Path, files.split(os.pathsep))) if files else (),
            environ.get(f"{PREFIX}DEV", "") == "1",
            _number(environ, "ROOM", ROOM),
            _number(environ, "RATE", 0),
            _number(environ, "WORKERS", 1),
            Path(journal) if journal else None,
            _number(environ, "MAX_PSEUDONYMS_PER_BODY", OPEN_BODY_PSEUDONYMS),
            _number(environ, "MAX_NEW_PSEUDONYMS_PER_HOUR", NEW_PER_HOUR),
            classes_in(environ.get(f"{PREFIX}SOURCE_CLASSES", "")),
            _bytes(environ, "MAX_SERIES_MEMORY") or SERIES_MEMORY,
            _bytes(environ, "MAX_STORE_MEMORY"),
            _number(environ, "ANALYSIS_MEMORY", ANALYSIS_MEMORY),
        )

    def environment(self) -> dict[str, str]:
        """Return the variables that say the same: how a server hands them to its workers."""
        return {
            f"{PREFIX}STORE": self.store,
            f"{PREFIX}COLLECTIONS": os.pathsep.join(map(str, self.collections)),
            f"{PREFIX}DEV": "1" if self.dev else "",
            f"{PREFIX}ROOM": str(self.room),
            f"{PREFIX}RATE": str(self.rate),
            f"{PREFIX}WORKERS": str(self.workers),
            f"{PREFIX}JOURNAL": str(self.journal or ""),
            f"{PREFIX}MAX_PSEUDONYMS_PER_BODY": str(self.max_pseudonyms_per_body),
            f"{PREFIX}MAX_NEW_PSEUDONYMS_PER_HOUR": str(self.max_new_pseudonyms_per_hour),
            f"{PREFIX}SOURCE_CLASSES": ",".join(self.source_classes),
            f"{PREFIX}MAX_SERIES_MEMORY": str(self.max_series_memory),
            f"{PREFIX}MAX_STORE_MEMORY": str(self.max_store_memory or ""),
            f"{PREFIX}ANALYSIS_MEMORY": str(self.analysis_memory),
        }


def classes_in(text: str) -> tuple[str, ...]:
    """Return the labels of a list with commas."""
    return tuple(each.strip() for each in text.split(",") if each.strip())


def _check_classes(labels: tuple[str, ...]) -> None:
    """Refuse labels that could be more than classes of networks."""
    if len(labels) > MOST_CLASSES:
        raise SettingsError("source-classes", str(len(labels)), f"give at most {MOST_CLASSES}")
    for label in labels:
        if not _CLASS.fullmatch(label):
            rule = "give labels of up to 20 lower-case letters, digits and -"
            raise SettingsError("source-classes", label, rule)


def _number(environ: Mapping[str, str], name: str, default: int) -> int:
    given = environ.get(PREFIX + name, "")
    try:
        return int(given) if given else default
    except ValueError:
        raise SettingsError(PREFIX + name, given, "give a whole number") from None


def _bytes(environ: Mapping[str, str], name: str) -> int | None:
    given = environ.get(PREFIX + name, "")
    try:
        return parse_bytes(given) if given else None
    except ValueError as error:
        raise SettingsError(PREFIX + name, given, str(error)) from None
