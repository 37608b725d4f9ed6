"""A SQLite store's file: who may read it, has it room to grow, is it whole?"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator

from ..store.sqlite.database import WAL_BYTES, SqliteDatabase
from ..store.sqlite.schema import STEPS
from ..store.sqlite.url import SqliteUrl
from .finding import Check, CheckResult, ok, warn, wrong

LITTLE = 1 << 30
NEXT_TO_NOTHING = 100 << 20
PART = 20  # less than one part in so many of the disk is little, too
OTHERS = stat.S_IRWXG | stat.S_IRWXO
MEGA = 1 << 20


def _schema(url: str) -> Iterator[CheckResult]:
    with SqliteDatabase(SqliteUrl.parse(url)).reading() as database:
        version = database.execute("pragma user_version").fetchone()[0]
        mode = database.execute("pragma journal_mode").fetchone()[0]
    if mode == "wal":
        yield ok(f"schema {version} of {len(STEPS)}, journal mode WAL")
    else:
        yield wrong(f"journal mode {mode}", "start `veilcount serve` once: it sets WAL")


def _readable(url: str) -> Iterator[CheckResult]:
    path = SqliteUrl.parse(url).path
    files = (path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-lock"))
    loose = [each for each in files if each.exists() and each.stat().st_mode & OTHERS]
    if loose:
        names = " ".join(map(str, loose))
        yield warn(f"others than its owner may read or write {names}", f"chmod 600 {names}")
    else:
        yield ok("its owner alone may read and write it")


def _disk(url: str) -> Iterator[CheckResult]:
    path = SqliteUrl.parse(url).path
    usage = shutil.disk_usage(path.parent)
    told = f"{usage.free // MEGA:,} MiB are free on the disk of {path.parent}"
    fix = "make room or move the store: a full disk takes no report, and loses none"
    if usage.free < NEXT_TO_NOTHING:
        yield wrong(told, fix)
    elif usage.free < max(LITTLE, usage.total // PART):
        yield warn(told, fix)
    else:
        yield ok(told)


def _log(url: str) -> Iterator[CheckResult]:
    path = SqliteUrl.parse(url).path
    log = path.with_name(f"{path.name}-wal")
    size = log.stat().st_size if log.exists() else 0
    if size > 2 * WAL_BYTES:
        yield warn(
            f"{log} has grown to {size // MEGA:,} MiB: it is never written back",
            "something reads the store without an end: end it, a copy or a backup, say",
        )
    else:
        yield ok(f"{size // MEGA:,} MiB wait to be written back")


def _whole(url: str) -> Iterator[CheckResult]:
    with SqliteDatabase(SqliteUrl.parse(url)).reading() as database:
        found = database.execute("pragma integrity_check(3)").fetchall()
    if found == [("ok",)]:
        yield ok("every page is sound")
    else:
        told = "; ".join(line for (line,) in found)
        yield wrong(f"damaged: {told}", "stop the servers, and restore the newest sound backup")


SQLITE: dict[str, Check[str]] = {
    "schema": _schema,
    "permissions": _readable,
    "disk": _disk,
    "log": _log,
}
DEEP: dict[str, Check[str]] = {"pages": _whole}
