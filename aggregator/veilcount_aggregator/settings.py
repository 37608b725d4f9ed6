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
| --analysis-   | VEILCOUNT_ANALYSIS_   | MB that the analysis process may take for its data;      |
|   memory      |   MEMORY              | 0: any number                                            |
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import SettingsError

PREFIX = "VEILCOUNT_"
ROOM = 10_000_000
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
    analysis_memory: int = ANALYSIS_MEMORY

    def __post_init__(self) -> None:
        """Refuse what nobody can run with."""
        if self.room < 1:
            raise SettingsError("room", str(self.room), "give 1 or more")
        if self.rate < 0:
            raise SettingsError("rate", str(self.rate), "give 0 (any number) or more")
        if self.workers < 1:
            raise SettingsError("workers", str(self.workers), "give 1 or more")
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
            f"{PREFIX}ANALYSIS_MEMORY": str(self.analysis_memory),
        }


def _number(environ: Mapping[str, str], name: str, default: int) -> int:
    given = environ.get(PREFIX + name, "")
    try:
        return int(given) if given else default
    except ValueError:
        raise SettingsError(PREFIX + name, given, "give a whole number") from None
