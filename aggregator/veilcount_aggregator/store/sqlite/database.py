"""The file of a store: opened on demand, shared by threads and processes, safe across forks.

WAL with synchronous=FULL: a commit is on the disk when it returns. There is one writer at a time:
in a process by a lock, between processes by a lock on a file next to the store. After any error the
connection is closed, and the next call opens anew.

No connection crosses a fork [sqlite.org/howtocorrupt, 2.6]: a child would take its parent's locks
for its own, and lose its WAL when the parent ends. And nobody writes to a file that was moved or
removed meanwhile: what is acknowledged must be found under the store's own name, and its WAL under
the WAL's name when the commit returns.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock, get_ident
from typing import NamedTuple
from weakref import WeakSet

from veilcount_serving.durable_files import file_identity
from veilcount_serving.errors import system_reason
from veilcount_serving.posix import IS_POSIX
from veilcount_serving.structured_logging import log_event

from ...errors import StoreError, StoreUnavailable, StoreUnfit
from ..series_reports import LOG_RESTORED
from ..sql.intake import COUNT
from .checkpoints import Checkpoints
from .connection import (
    SECONDS,
    ReaderPool,
    SqliteUrl,
    checkpoint_and_refuse,
    connect,
    create_file,
    enable_wal,
    refuse_links,
    require_file,
    store_error,
)
from .file_lock import FileLock, SoleLock
from .health import PAGES_FOR_SECONDS, WriteHealth, is_damaged
from .height import SqliteHeight
from .schema import prepare_tables, refuse_other_format
from .wal_guard import WalGuard

#: how long a fork waits for other threads' calls
FORK_SECONDS = 1.0
CACHE_KIB = 64_000
WAL_BYTES = 64 << 20
#: the identity of no file
NO_FILE = (0, 0)


class Moment(NamedTuple):
    """A state of the file, as one connection sees it."""

    database: sqlite3.Connection
    version: int  # that other connections' commits change
    changes: int  # of this connection


class SqliteDatabase:
    """One store's file."""

    def __init__(self, place: SqliteUrl) -> None:
        self.place = place
        self.condition = WriteHealth()
        self.found: Moment | None = None  # by the transaction under way, or the last one
        self._make = False
        self._identity = NO_FILE
        self._writer: sqlite3.Connection | None = None
        self._checkpoints: Checkpoints | None = None  # of the writer
        self._mine = Lock()
        lock = FileLock if IS_POSIX else SoleLock
        self._lock = lock(place.path.with_name(f"{place.path.name}-lock"))
        self._readers = ReaderPool(self._reader, SECONDS)
        self._guard = WalGuard(place.path)
        self._forking: dict[int, list[bool]] = {}
        self._orphan = False
        self._left: list[object] = []
        self._restored_logs = 0  # that are not in the store's counters yet
        _live.add(self)

    def open(self, *, make: bool) -> None:
        """Open it, so that what is wrong shows now; make it where there is none, on request."""
        self._make = make
        with self.writing():
            self._make = False

    @contextmanager
    def writing(self, *, probe: bool = False) -> Iterator[sqlite3.Connection]:
        """Do all of it, durably, or nothing; a probe is too small to show that there is space."""
        if not self._mine.acquire(timeout=SECONDS):
            raise StoreUnavailable(f"{self.place.path}: another call has taken {SECONDS:g} s")
        try:
            self._refuse_orphan()
            self._find()
            self._lock.take(SECONDS)
            database = self._database()
            database.execute("begin immediate")
            # Whoever upgraded this store did not end this process first: it writes no more.
            refuse_other_format(database, str(self.place.path))
            self.found = _moment(database)
            restored = self._count_restored_logs(database)
            yield database
            database.execute("commit")
            self._restored_logs -= restored
            self._keep_log(database)
            if self._checkpoints is not None:
                self._checkpoints.committed(database)
            if database.total_changes != self.found.changes:
                self.condition.wrote(probe=probe)
        except (sqlite3.Error, OSError) as error:
            self._close_writer()
            failure = self._examine(error)
            self.condition.failed(failure, error, probe=probe)
            raise failure from error
        except BaseException:
            self._roll_back()
            raise
        finally:
            self._lock.release()
            self._mine.release()

    def moment(self) -> Moment:
        """Return the state of the file, which changes with each write of any connection."""
        assert self._writer is not None  # noqa: S101 - a transaction is under way
        return _moment(self._writer)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read one state of the store."""
        try:
            self._refuse_orphan()
            if self._identity != NO_FILE and self._moved():
                self._readers.close()
                self._reopen()
            with self._readers.reading() as database:
                yield database
        except (sqlite3.Error, OSError) as error:
            raise self._examine(error) from error

    def keep_log(self) -> None:
        """Put back a log that was removed, also where nothing is committed."""
        if not self._guard.intact():
            self._reopen()

    def close(self) -> None:
        """Close connections and files."""
        self._readers.close()  # first: the writer tidies up if it is the last one
        with self._mine:
            self._let_go()

    # -- forks ---------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Wait for other threads, and close: the next call opens anew, on either side."""
        locks = [self._mine.acquire(timeout=FORK_SECONDS), self._readers.stop(FORK_SECONDS)]
        self._forking[get_ident()] = locks
        if locks[0]:
            self._let_go()

    def after_fork_in_parent(self) -> None:
        """Accept calls again."""
        wrote, read = self._forking.pop(get_ident())
        if wrote:
            self._mine.release()
        if read:
            self._readers.go_on()

    def after_fork_in_child(self) -> None:
        """Begin anew; if something of the parent's was in use, never touch the file."""
        self._orphan = not all(self._forking.pop(get_ident()))
        self._forking = {}
        self._lock.close()
        self._guard.abandon()
        # closing them would disturb the parent
        self._left += [self._writer, self._checkpoints, self._readers]
        self._writer = self._checkpoints = None
        self._mine = Lock()
        self._readers = ReaderPool(self._reader, SECONDS)

    # -- inside --------------------------------------------------------------------------------

    def _refuse_orphan(self) -> None:
        if self._orphan:
            raise StoreUnavailable(
                f"{self.place.path}: this process was forked in the middle of another thread's"
                " call: open the store after the fork"
            )

    def _reopen(self) -> None:
        """Open the file that has the store's name, and its log."""
        with self.writing():
            pass

    def _examine(self, error: sqlite3.Error | OSError) -> StoreError:
        """Map an error; damage has to be confirmed, since a connection may have mixed two files."""
        failure = store_error(error, self.place.path)
        if not isinstance(failure, StoreUnfit):
            return failure
        if self._is_sound():
            return StoreUnavailable(
                f"{self.place.path}: {system_reason(error)}; a new connection finds no damage: try"
                " again; `veilcount doctor --deep` reads every page"
            )
        self.condition.damaged()
        return failure

    def _is_sound(self) -> bool:
        """Whether a new connection reads all pages, in the time there is, and finds no damage."""
        try:
            with closing(connect(self.place.path, "ro")) as database:
                return is_damaged(database, PAGES_FOR_SECONDS) is False
        except (sqlite3.Error, StoreError):
            return False

    def _keep_log(self, database: sqlite3.Connection) -> None:
        """See that the log is found under its name; else put it back, or save it and refuse."""
        if self._guard.intact():
            return
        name = f"{self.place.path.name}-wal"
        self._readers.close()  # what opened meanwhile has another log
        if self._guard.restore():
            self._restored_logs += 1
            log_event(
                "write-ahead log restored",
                logging.ERROR,
                store="sqlite",
                reason=f"{name} was removed or replaced while the store was in use: find out how",
            )
            return
        if self._checkpoints is not None:
            self._checkpoints.wait()
        checkpoint_and_refuse(database, self.place.path)

    def _count_restored_logs(self, database: sqlite3.Connection) -> int:
        """Add what is not counted yet to the store's counters; return how many."""
        restored = self._restored_logs
        if restored:
            database.execute(COUNT, (LOG_RESTORED, "", -1, "", restored))
        return restored

    def _find(self) -> None:
        if self._writer is None:
            refuse_links(self.place.path)
        if self._make:
            create_file(self.place.path)
        elif self._writer is None:
            require_file(self.place.path)

    def _moved(self) -> bool:
        return file_identity(self.place.path) != self._identity

    def _database(self) -> sqlite3.Connection:
        if self._writer is not None and self._moved():
            self._close_writer()
        if self._writer is None:
            self._writer = self._open_writer()
        return self._writer

    def _open_writer(self) -> sqlite3.Connection:
        path = self.place.path
        require_file(path)
        self._guard.prepare(self._has_acknowledged)
        database = connect(path, "rw")
        try:
            status = path.stat()
            prepare_tables(database, str(path), make=self._make)
            enable_wal(database, path)
            self._prepare(database)
            self._guard.hold()
            self._checkpoints = self._checkpoints_of(path)
        except BaseException:
            database.close()
            raise
        self._identify(status)
        return database

    def _identify(self, file: os.stat_result) -> None:
        """Remember which file is open; if it is another one than before, say so."""
        identity = file.st_dev, file.st_ino
        if identity == self._identity:
            return
        if self._identity != NO_FILE:
            log_event(
                "store file replaced",
                logging.WARNING,
                store="sqlite",
                reason=f"another file was moved to {self.place.path.name}, and is the store: what"
                " was acknowledged before is in the earlier file",
            )
        self.condition.reset()
        self._identity = identity

    def _checkpoints_of(self, path: Path) -> Checkpoints:
        database = connect(path, "rw")
        try:
            self._prepare(database)
        except BaseException:
            database.close()
            raise
        return Checkpoints(database, path.with_name(f"{path.name}-wal"))

    def _prepare(self, database: sqlite3.Connection) -> None:
        for setting in self._settings():
            database.execute(setting)
        database.execute("pragma schema_version").fetchone()  # opens log and index

    def _settings(self) -> Iterator[str]:
        yield f"pragma synchronous = {'full' if self.place.durable else 'off'}"
        yield "pragma fullfsync = on"  # of macOS, whose fsync leaves it to the disk's cache
        yield "pragma secure_delete = on"  # what is dropped is gone from the disk's pages too
        yield f"pragma cache_size = -{CACHE_KIB}"
        yield "pragma wal_autocheckpoint = 0"  # which would be within a commit
        yield f"pragma journal_size_limit = {WAL_BYTES}"

    def _reader(self) -> sqlite3.Connection:
        """Connect a reader: it opens the log by its name, which is therefore checked here."""
        self.keep_log()
        return connect(self.place.path, "ro")

    def _has_acknowledged(self) -> bool:
        """Whether the file has all that this host has acknowledged; False if that is not known."""
        with closing(connect(self.place.path, "ro")) as database:
            return SqliteHeight(self.place.path).is_reached(database)

    def _roll_back(self) -> None:
        if self._writer is not None and self._writer.in_transaction:
            try:
                self._writer.execute("rollback")
            except sqlite3.Error:
                self._close_writer()

    def _close_writer(self) -> None:
        if self._writer is not None:
            replaced = self._moved() and self.place.path.exists()
            if self._checkpoints is not None:
                self._checkpoints.close()
                self._checkpoints = None
            saved = replaced and _is_written_back(self._writer)
            with suppress(OSError):  # SQLite removes by name what it has written back
                if not self._moved() and not self._guard.intact():
                    self._guard.restore()
            with suppress(sqlite3.Error):
                self._writer.close()
            self._writer = None
            with suppress(OSError):
                if replaced:
                    self._guard.detach(saved=saved)
                self._guard.release()

    def _let_go(self) -> None:
        self._close_writer()
        self._lock.close()


def _moment(database: sqlite3.Connection) -> Moment:
    (version,) = database.execute("pragma data_version").fetchone()
    return Moment(database, version, database.total_changes)


def _is_written_back(database: sqlite3.Connection) -> bool:
    """Write the log back as far as readers allow, and return whether that was all of it."""
    try:
        busy, logged, saved = database.execute("pragma wal_checkpoint(passive)").fetchone()
    except sqlite3.Error:
        return False
    return not busy and logged == saved


_live: WeakSet[SqliteDatabase] = WeakSet()


def _for_each_live(act: Callable[[SqliteDatabase], None]) -> Callable[[], None]:
    """Return a hook that does something to each database of this process."""

    def hook() -> None:
        for database in list(_live):
            act(database)

    return hook


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_for_each_live(SqliteDatabase.before_fork),
        after_in_parent=_for_each_live(SqliteDatabase.after_fork_in_parent),
        after_in_child=_for_each_live(SqliteDatabase.after_fork_in_child),
    )
