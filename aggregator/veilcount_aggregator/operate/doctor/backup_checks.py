"""Checks of a directory of backups: the newest one, permissions, and where the journal is."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from veilcount_serving.findings import (
    Check,
    CheckResult,
    Finding,
    Severity,
    examine,
    graded,
    ok,
    or_ok,
    problems_or_ok,
    warn,
    wrong,
)

from ...releases.release_journal import ENDING
from ...store.sqlite.file_checks import exposed
from ...store.sqlite.schema import APPLICATION, FORMAT, format_of

BACKUPS = "backups"
OLD = timedelta(days=2)
TOO_OLD = timedelta(days=7)
SQLITE_MAGIC, REDIS_MAGIC = b"SQLite format 3\0", b"REDIS"
MAKE = "run `veilcount store backup FILE` daily, to another disk"


@dataclass(frozen=True, slots=True)
class BackupDirectory:
    """A directory of backups at an instant, and the journal of releases of its deployment."""

    path: Path
    now: datetime
    journal: Path | None

    def files(self) -> list[Path]:
        """Return the backups in it."""
        return [file for file in self.path.iterdir() if file.is_file() and _is_backup(file)]

    def journals(self) -> list[Path]:
        """Return the journals of releases in it, by path or by name."""
        journal = self.journal.resolve() if self.journal else None
        files = (file for file in self.path.rglob("*") if file.is_file())
        return [file for file in files if file.resolve() == journal or file.name.endswith(ENDING)]


def examine_backups(path: Path, now: datetime, journal: Path | None = None) -> Iterator[Finding]:
    """Yield the findings of a directory of backups."""
    if path.is_dir():
        yield from examine(BACKUPS, BACKUP_CHECKS, BackupDirectory(path, now, journal))
    else:
        fix = "give the directory that backups are written to"
        yield Finding(BACKUPS, "newest", Severity.WRONG, f"{path} is not a directory", fix)


def _newest(directory: BackupDirectory) -> Iterator[CheckResult]:
    files = directory.files()
    if not files:
        yield wrong(f"{directory.path} contains no backup of a store", MAKE)
        return
    newest = max(files, key=lambda file: file.stat().st_mtime)
    yield _age(newest, directory.now)
    yield from _verified(newest)


def _private(directory: BackupDirectory) -> Iterator[CheckResult]:
    problems = exposed(directory.path, directory.files())
    yield from problems_or_ok(problems, "only their owner may read and write the backups")


@or_ok("no journal of releases is among the backups")
def _separate(directory: BackupDirectory) -> Iterator[CheckResult]:
    for journal in directory.journals():
        yield warn(
            f"{journal} is among the backups: a lost disk or an older copy takes both, and spent"
            " budget is forgotten",
            "move the journal and its .id file to another disk, and give it as --journal",
        )


BACKUP_CHECKS: dict[str, Check[BackupDirectory]] = {
    "newest": _newest,
    "permissions": _private,
    "journal": _separate,
}


def _is_backup(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(len(SQLITE_MAGIC))
    return head == SQLITE_MAGIC or head.startswith(REDIS_MAGIC)


def _age(path: Path, now: datetime) -> CheckResult:
    age = now - datetime.fromtimestamp(path.stat().st_mtime, UTC)
    message = f"{path.name} is {age.days} days and {age.seconds // 3600} hours old"
    return graded(message, MAKE, is_wrong=age > TOO_OLD, is_doubtful=age > OLD)


def _verified(path: Path) -> Iterator[CheckResult]:
    """Read the whole backup, as a restore would; only Redis can verify its own file format."""
    with path.open("rb") as file:
        if file.read(len(REDIS_MAGIC)) == REDIS_MAGIC:
            yield warn(f"{path.name} is a Redis file", f"verify it with redis-check-rdb {path}")
            return
    try:
        yield _read(path)
    except sqlite3.Error as error:
        yield wrong(f"{path.name} cannot be read: {error}", MAKE)


def _read(path: Path) -> CheckResult:
    url = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    with closing(sqlite3.connect(url, uri=True)) as database:
        (application,) = database.execute("pragma application_id").fetchone()
        number = format_of(database)
        (sound,) = database.execute("pragma quick_check(1)").fetchone()
    if application != APPLICATION:
        return wrong(f"{path.name} is not a veilcount store", MAKE)
    if number != FORMAT:
        return wrong(
            f"{path.name} has format {number}; this version reads {FORMAT}",
            "restore it with the version that wrote it",
        )
    if sound != "ok":
        return wrong(f"{path.name} is damaged: {sound}", MAKE)
    return ok(f"{path.name} is intact and can be restored")
