"""SQLite as an engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from veilcount_serving.findings import CheckResult, Finding, examine

from ..engine import Engine
from . import backup_file
from .connection import SqliteUrl
from .file_checks import SQLITE, SQLITE_DEEP
from .store import SqliteStore, open_sqlite


class SqliteEngine(Engine):
    """The engine of one machine."""

    schemes = frozenset({"sqlite"})
    form = "sqlite:///path/to/file.db"
    magic = backup_file.MAGIC

    def open(self, url: str, *, make: bool, heights: Path | None) -> SqliteStore:
        return open_sqlite(url, make=make)

    def file(self, url: str) -> Path:
        return SqliteUrl.parse(url).path

    def back_up(self, url: str, part: Path) -> None:
        backup_file.copy(SqliteUrl.parse(url), part)

    def verify_backup(self, path: Path) -> Iterator[CheckResult]:
        return backup_file.verify(path)

    def examine_files(self, url: str, target: str, *, deep: bool) -> Iterator[Finding]:
        return examine(target, SQLITE | (SQLITE_DEEP if deep else {}), url)
