"""Connections to the file of a store: its URL, its creation, errors, and a pool of readers."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Semaphore
from time import monotonic
from urllib.parse import quote, unquote, urlsplit

from veilcount_serving.durable_files import sync_path
from veilcount_serving.errors import SettingsError, system_reason

from ...errors import StoreError, StoreFull, StoreUnavailable, StoreUnfit
from .wal_guard import remove_links

#: how long a call waits for others
SECONDS = 10.0


def create_file(path: Path) -> None:
    """Make an empty file that only its owner may read, and see that its name lasts."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
        remove_links(path)
        sync_path(path.parent)


def require_file(path: Path) -> None:
    """Raise StoreUnfit if there is no file."""
    if path.is_dir():
        raise StoreUnfit(f"{path} is a directory: a store is a file in one")
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


_MADE = ("-wal", "-shm", "-journal", "-lock")


def refuse_links(path: Path) -> None:
    """Raise StoreUnfit if a file that SQLite makes, or the lock, is a link."""
    for companion in (path.with_name(path.name + end) for end in _MADE):
        if companion.is_symlink():
            raise StoreUnfit(f"{companion} is a link: remove it")


FORM = "give sqlite:///relative.db or sqlite:////absolute.db"


@dataclass(frozen=True, slots=True)
class SqliteUrl:
    """An absolute path, and whether a commit waits until the disk has it."""

    path: Path
    durable: bool = True

    @classmethod
    def parse(cls, url: str) -> SqliteUrl:
        """Parse a URL."""
        parts = urlsplit(url)
        name = unquote(parts.path[1:])
        if parts.scheme != "sqlite" or parts.netloc or parts.fragment or not parts.path[:1] == "/":
            raise SettingsError("store", url, FORM)
        if not name or name.endswith("/") or ":memory:" in name or "\0" in name:
            raise SettingsError("store", url, f"{FORM}: a store is a file")
        if parts.query not in {"", "durability=relaxed"}:
            raise SettingsError("store", url, "the only parameter is durability=relaxed")
        return cls(Path(name).absolute(), durable=not parts.query)


#: a disk with less is full: where a file is mapped into memory (the WAL's index), SQLite reports a
#: full disk like any failed write
LEAST_FREE_BYTES = 1 << 16

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_FULL = {errno.ENOSPC, errno.EDQUOT}


def store_error(error: sqlite3.Error | OSError, path: Path) -> StoreError:
    """Map an error at a store's file; the result has no row and no message."""
    if isinstance(error, OSError):
        code, full, damaged = error.errno, error.errno in _FULL, False
    else:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        full = code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _is_disk_full(path))
        damaged = code in _DAMAGED
    if full:
        return StoreFull(f"{path}: the disk is full: free some space")
    if damaged:
        return StoreUnfit(f"{path} is damaged ({error}): restore a backup")
    return StoreUnavailable(
        f"{path}: {system_reason(error)}: check the file, its folder and its disk"
    )


def _is_disk_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < LEAST_FREE_BYTES
    except OSError:
        return False


MOST_READERS = 8


class ReaderPool:
    """A pool of readers; a reading is one snapshot."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], seconds: float) -> None:
        self._connect = connect
        self._seconds = seconds
        self._idle: list[sqlite3.Connection] = []
        self._closed = 0  # how often: a connection of an earlier time is not kept
        self._free = Semaphore(MOST_READERS)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read one state of the store."""
        if not self._free.acquire(timeout=self._seconds):
            raise StoreUnavailable(f"{MOST_READERS} readers have been busy for {self._seconds:g} s")
        try:
            closed, database = self._closed, self._take()
            try:
                database.execute("begin")
                yield database
                database.execute("rollback")
            except BaseException:
                database.close()
                raise
            self._put_back(database, closed)
        finally:
            self._free.release()

    def stop(self, seconds: float) -> bool:
        """Keep new readers out and close all connections; return whether nobody reads any more."""
        ends = monotonic() + seconds
        for stopped in range(MOST_READERS):
            if not self._free.acquire(timeout=max(0.0, ends - monotonic())):
                for _ in range(stopped):
                    self._free.release()
                return False
        self.close()
        return True

    def go_on(self) -> None:
        """Accept readers again."""
        self._free.release(MOST_READERS)

    def close(self) -> None:
        """Close what is idle now, and what is in use when it comes back."""
        self._closed += 1
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _put_back(self, database: sqlite3.Connection, closed: int) -> None:
        if closed == self._closed:
            self._idle.append(database)
        else:
            database.close()

    def _take(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()
