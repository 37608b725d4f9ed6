"""Checks of a SQLite store's files: permissions, disk, log and pages."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from contextlib import closing

from veilcount_serving.findings import Check, CheckResult, graded, ok, or_ok, warn, wrong

from ...errors import StoreUnfit
from ..file_permissions import exposed
from .checkpoints import WAL_PAGES
from .connection import SqliteUrl, connect
from .database import SqliteDatabase
from .schema import format_of

LITTLE = 1 << 30
NEXT_TO_NOTHING = 100 << 20
PART = 20  # less than this part of the disk is little, too
MEGA = 1 << 20
RESTORE = "stop the servers, and restore the newest intact backup"


def _schema(url: str) -> Iterator[CheckResult]:
    with closing(SqliteDatabase(SqliteUrl.parse(url))) as file, file.reading() as database:
        number = format_of(database)
        mode = database.execute("pragma journal_mode").fetchone()[0]
    if mode == "wal":
        yield ok(f"format {number}, journal mode WAL")
    else:
        yield wrong(f"journal mode {mode}", "start `veilcount serve` once: it sets WAL")


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
