"""Checks of a SQLite store's file: permissions, disk space, log size, integrity."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from contextlib import closing

from ..store.sqlite.connection import SqliteUrl
from ..store.sqlite.database import WAL_BYTES, SqliteDatabase
from ..store.sqlite.schema import STEPS
from .finding import Check, CheckResult, graded, ok, warn, wrong

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
DEEP: dict[str, Check[str]] = {"pages": _whole}
