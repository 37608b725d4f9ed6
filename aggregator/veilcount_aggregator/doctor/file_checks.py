"""Checks of files: a SQLite store's permissions, disk, log and pages; a directory of backups."""

from __future__ import annotations

import shlex
import shutil
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from ..central.release_journal import ENDING
from ..errors import StoreUnfit
from ..store.sqlite.connection import SqliteUrl, connect
from ..store.sqlite.database import WAL_PAGES, SqliteDatabase
from ..store.sqlite.schema import APPLICATION, STEPS
from .finding import (
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

LITTLE = 1 << 30
NEXT_TO_NOTHING = 100 << 20
PART = 20  # less than this part of the disk is little, too
OTHERS = stat.S_IRWXG | stat.S_IRWXO
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
MEGA = 1 << 20
RESTORE = "stop the servers, and restore the newest intact backup"


def _schema(url: str) -> Iterator[CheckResult]:
    with closing(SqliteDatabase(SqliteUrl.parse(url))) as file, file.reading() as database:
        version = database.execute("pragma user_version").fetchone()[0]
        mode = database.execute("pragma journal_mode").fetchone()[0]
    if mode == "wal":
        yield ok(f"schema {version} of {len(STEPS)}, journal mode WAL")
    else:
        yield wrong(f"journal mode {mode}", "start `veilcount serve` once: it sets WAL")


def exposed(directory: Path, files: Iterable[Path]) -> Iterator[CheckResult]:
    """Yield a problem if others may change a directory, and one if they may open files in it.

    Who may write to a directory may put another file in the place of one that only its owner reads.
    """
    if directory.stat().st_mode & OTHERS_WRITE:
        fix = f"chmod go-w {shlex.quote(str(directory))}"
        yield wrong(f"other users may replace or delete the files in {directory}", fix)
    readable = [str(file) for file in files if file.stat().st_mode & OTHERS]
    if readable:
        names = shlex.join(sorted(readable))
        yield warn(f"other users may read or write {names}", f"chmod 600 {names}")


@or_ok("only its owner may read and write its files, and change their directory")
def _permissions(url: str) -> Iterator[CheckResult]:
    path = SqliteUrl.parse(url).path
    own_names = (path.name, f".{path.name}-")  # with its log, lock and journal, and their links
    files = [file for file in path.parent.iterdir() if file.name.startswith(own_names)]
    yield from exposed(path.parent, files)


def _disk(url: str) -> Iterator[CheckResult]:
    path = SqliteUrl.parse(url).path
    usage = shutil.disk_usage(path.parent)
    yield graded(
        f"{usage.free // MEGA:,} MiB are free on the disk of {path.parent}",
        "free space or move the store: on a full disk reports are not accepted, and none is lost",
        is_wrong=usage.free < NEXT_TO_NOTHING,
        is_doubtful=usage.free < max(LITTLE, usage.total // PART),
    )


def _log(url: str) -> Iterator[CheckResult]:
    """Check that the log can be written back, as each commit does at times: a reader prevents it.

    Readers that have just begun keep a few pages back; one that stays keeps back all that follow.
    """
    path = SqliteUrl.parse(url).path
    with closing(connect(path, "rw")) as database:
        _, logged, written_back = database.execute("pragma wal_checkpoint(passive)").fetchone()
        (page,) = database.execute("pragma page_size").fetchone()
    pending = logged - written_back
    if pending > WAL_PAGES:
        yield warn(
            f"{pending * page // MEGA:,} MiB of the log cannot be written back: it grows while a"
            " process reads an older state",
            f"end the long-running reader of the store, such as a copy or a backup:"
            f" `fuser -v {shlex.quote(f'{path}-shm')}` lists its processes",
        )
    else:
        yield ok("all of the log that no reader uses is written back")


def _whole(url: str) -> Iterator[CheckResult]:
    try:
        with closing(SqliteDatabase(SqliteUrl.parse(url))) as file, file.reading() as database:
            lines = [line for (line,) in database.execute("pragma integrity_check(3)")]
    except StoreUnfit as error:  # so damaged that SQLite cannot list the damage
        lines = [str(error)]
    if lines == ["ok"]:
        yield ok("all pages are intact")
    else:
        yield wrong(f"damaged: {'; '.join(lines)}", RESTORE)


SQLITE: dict[str, Check[str]] = {
    "schema": _schema,
    "permissions": _permissions,
    "disk": _disk,
    "log": _log,
}
SQLITE_DEEP: dict[str, Check[str]] = {"pages": _whole}


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
        (version,) = database.execute("pragma user_version").fetchone()
        (sound,) = database.execute("pragma quick_check(1)").fetchone()
    if application != APPLICATION:
        return wrong(f"{path.name} is not a veilcount store", MAKE)
    if version > len(STEPS):
        return wrong(f"{path.name} was written by a newer veilcount", "upgrade this one")
    if sound != "ok":
        return wrong(f"{path.name} is damaged: {sound}", MAKE)
    return ok(f"{path.name} is intact and can be restored")
