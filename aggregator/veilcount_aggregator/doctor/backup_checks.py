"""Checks of a folder of backups: the age and the integrity of the newest."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from ..store.sqlite.schema import APPLICATION, STEPS
from .finding import Check, CheckResult, Finding, examine, graded, ok, warn, wrong

TARGET = "backups"
OLD = timedelta(days=2)
TOO_OLD = timedelta(days=7)
SQLITE_MAGIC, REDIS_MAGIC = b"SQLite format 3\0", b"REDIS"
MAKE = "run `veilcount store backup FILE` daily, to another disk"


def examine_backups(folder: Path, now: datetime) -> Iterator[Finding]:
    """Yield the findings of a folder."""
    checks: dict[str, Check[Path]] = {"newest": lambda path: _newest(path, now)}
    yield from examine(TARGET, checks, folder)


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
