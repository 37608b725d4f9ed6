"""Connections to the file of a store: creation, settings, and checks of its path."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from ...errors import StoreUnavailable, StoreUnfit
from .wal_guard import remove_links

#: how long a call waits for others
SECONDS = 10.0


def create_file(path: Path) -> None:
    """Make an empty file that only its owner may read, and see that its name lasts."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
        remove_links(path)
        directory = os.open(path.parent, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)


def require_file(path: Path) -> None:
    """Raise StoreUnfit if there is no file."""
    if not path.exists():
        raise StoreUnfit(f"{path}: no store there: make one with `veilcount init`")


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """Return a new connection to a file that is there; any thread may use it."""
    require_file(path)
    return sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        timeout=SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )


def enable_wal(database: sqlite3.Connection, path: Path) -> None:
    """Set WAL, or raise StoreUnfit: the file system cannot share memory."""
    mode = database.execute("pragma journal_mode = wal").fetchone()[0]
    if mode != "wal":
        raise StoreUnfit(
            f"{path}: its file system has no shared memory, as of a network drive: put the store on"
            " a local disk"
        )


def checkpoint_and_refuse(database: sqlite3.Connection, path: Path) -> None:
    """Write a log that has no name left back into the database, and refuse to go on with it."""
    busy, logged, saved = database.execute("pragma wal_checkpoint(full)").fetchone()
    what = f"{path}: its write-ahead log was removed, and every other name of it"
    if busy or logged != saved:
        raise StoreUnavailable(
            f"{what}: end all readers, then stop all processes with SIGTERM, which write it back as"
            " they end; a kill -9 would lose what was acknowledged"
        )
    raise StoreUnfit(
        f"{what}. Everything acknowledged is written back: stop all processes, and start them again"
    )


def execute(database: sqlite3.Connection, *statements: str) -> None:
    """Execute statements, one after the other."""
    for statement in statements:
        database.execute(statement)


_MADE = ("-wal", "-shm", "-journal", "-lock")


def refuse_links(path: Path) -> None:
    """Raise StoreUnfit if a file that SQLite makes, or the lock, is a link."""
    for each in (path.with_name(path.name + end) for end in _MADE):
        if each.is_symlink():
            raise StoreUnfit(f"{each} is a link: remove it")
