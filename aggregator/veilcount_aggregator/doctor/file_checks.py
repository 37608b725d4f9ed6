"""Checks of files: a SQLite store's permissions, disk, log and pages; a folder's newest backup."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from ..store.sqlite.connection import SqliteUrl
from ..store.sqlite.database import WAL_BYTES, SqliteDatabase
from ..store.sqlite.schema import APPLICATION, STEPS
from .finding import Check, CheckResult, Finding, examine, graded, ok, warn, wrong

LITTLE = 1 << 30
NEXT_TO_NOTHING = 100 << 20
PART = 20  # less than this part of the disk is little, too
OTHERS = stat.S_IRWXG | stat.S_IRWXO
MEGA = 1 << 20


def _schema(url: str) -> Iterator[CheckResult]:
    with closing(SqliteDatabase(SqliteUrl.parse(url))) as file, file.reading() as database:
        version = database.execute("pragma user_version").fetchone()[0]
        mode = database.execute("pragma journal_mode").fetchone()[0]
    if mode == "wal":
        yield ok(f"schema {version} of {len(STEPS)}, journal mode WAL")
    else:
        yield wrong(f"journal mode {mode}", "start `veilcount serve` once: it sets WAL")


def _permissions(url: str) -> Iterator[CheckResult]:
    path = SqliteUrl.parse(url).path
    files = (path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-lock"))
    loose = [each for each in files if each.exists() and each.stat().st_mode & OTHERS]
    if loose:
        names = " ".join(map(str, loose))
        yield warn(f"other users may read or write {names}", f"chmod 600 {names}")
    else:
        yield ok("only its owner may read and write it")


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
    path = SqliteUrl.parse(url).path
    log = path.with_name(f"{path.name}-wal")
    size = log.stat().st_size if log.exists() else 0
    if size > 2 * WAL_BYTES:
        yield warn(
            f"{log} has grown to {size // MEGA:,} MiB: checkpoints do not complete",
            "end the long-running reader of the store, such as a copy or a backup",
        )
    else:
        yield ok(f"{size // MEGA:,} MiB to checkpoint")


def _whole(url: str) -> Iterator[CheckResult]:
    with closing(SqliteDatabase(SqliteUrl.parse(url))) as file, file.reading() as database:
        found = database.execute("pragma integrity_check(3)").fetchall()
    if found == [("ok",)]:
        yield ok("all pages are intact")
    else:
        damage = "; ".join(line for (line,) in found)
        yield wrong(f"damaged: {damage}", "stop the servers, and restore the newest intact backup")


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


def examine_backups(folder: Path, now: datetime) -> Iterator[Finding]:
    """Yield the findings of a folder."""
    checks: dict[str, Check[Path]] = {"newest": lambda path: _newest(path, now)}
    yield from examine(BACKUPS, checks, folder)


def _newest(folder: Path, now: datetime) -> Iterator[CheckResult]:
    if not folder.is_dir():
        yield wrong(f"{folder} is not a folder", "give the folder that backups are written to")
        return
    found = [each for each in folder.iterdir() if each.is_file() and _is_backup(each)]
    if not found:
        yield wrong(f"{folder} contains no backup of a store", MAKE)
        return
    newest = max(found, key=lambda each: each.stat().st_mtime)
    yield _age(newest, now)
    yield from _verified(newest)


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
