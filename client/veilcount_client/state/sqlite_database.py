"""The file of a state: opened, shared by threads and processes, kept through forks, set aside.

WAL with synchronous=FULL and fullfsync: a commit is on the disk when it returns. Every write is one
BEGIN IMMEDIATE transaction, so two processes never see the same free slot.

Two rules come from how SQLite may be corrupted [sqlite.org/howtocorrupt, 2.4 and 2.6]. A damaged
file is never renamed, since whoever has it open would delete the new one's WAL when they leave: it
stays, and the next number begins. And no connection crosses a fork: a child would take its parent's
locks for its own, and lose its WAL when the parent ends.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from threading import RLock, get_ident
from typing import Any
from weakref import WeakSet

from veilcount_shared.errors import VeilcountError

from ..errors import StateError
from . import file_checks
from .key_derivation import new_root
from .losses import Loss
from .package_files import package_file

FILE = "veilcount.db"
BUSY_SECONDS = 5.0
RETRY_SECONDS = 0.01
FORK_SECONDS = 1.0  # how long a fork waits for another thread's transaction
VERSION = 3
IMPOSSIBLE_COUNT = 10**18  # transactions that no file has
MOST_MOVES = 10  # that are kept
LOG_PAGES = 32  # of the log, at which it is written back: SQLite's 1,000 are 4 MB a device
LOG_BYTES = LOG_PAGES << 12  # that one of many records at once leaves of it
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class _Damaged(StateError):
    """The file was damaged, and the next one begins."""


class SqliteFile:
    """The file of one directory."""

    def __init__(
        self, directory: str | os.PathLike[str], now: Callable[[], float] = time.time
    ) -> None:
        """Open the state, or make it; StateError if there is no durable place."""
        self.root = b""
        self._now = now
        self._directory = Path(directory)
        self._number = 1
        self._next = self._path(2)  # looked for before every access: not made anew each time
        self._pid = os.getpid()
        self._lock = RLock()
        self._forking: set[int] = set()  # threads that fork now
        self._connection: sqlite3.Connection | None = None
        self._mark, self._marked = file_checks.mark_path(self._path(1)), 0
        self._abandoned: list[sqlite3.Connection] = []
        with suppress(_Damaged), self._reading():
            pass
        _live.add(self)

    def close(self) -> None:
        with self._lock:
            self._let_go()

    def after_fork(self) -> None:
        self._pid = os.getpid()
        self._lock = RLock()
        self._forking = set()
        if self._connection is not None:
            self._abandoned.append(self._connection)  # closing it would disturb the parent
            self._connection = None

    def before_fork(self) -> None:
        """Wait for other threads, and close: the next call opens anew, on either side."""
        if self._lock.acquire(timeout=FORK_SECONDS):
            self._forking.add(get_ident())
            self._let_go()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        if get_ident() in self._forking:
            self._forking.discard(get_ident())
            self._lock.release()

    def _let_go(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _path(self, number: int) -> Path:
        """Return where the state is since the file was damaged so many times, less one."""
        return self._directory / (FILE if number == 1 else f"{number}-{FILE}")

    def _database(self) -> sqlite3.Connection:
        if self._next.exists():  # another process found this one damaged
            self._let_go()
        return self._connection or self._open()

    def _open(self) -> sqlite3.Connection:
        known_root = self.root
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        file_checks.check_directory(self._directory)
        while self._next.exists():
            self._number += 1
            self._next = self._path(self._number + 1)
        path = self._path(self._number)
        file_checks.check_file(path)
        file_checks.create_file(path)
        self._connection = _connect(path)
        try:
            _make(self._connection, path.name)
            self.root = self._begin(self._connection, path)
        except BaseException:
            self._let_go()  # now: later it would delete by name what is another's by then
            raise
        if known_root not in {b"", self.root}:
            raise StateError("the state was damaged or removed, and begins anew")
        return self._connection

    def _begin(self, database: sqlite3.Connection, path: Path) -> bytes:
        """Return the root secret. A state that was moved keeps it: by it the ledger is found."""
        machine, self._mark = file_checks.machine_digest(path), file_checks.mark_path(path)
        with transaction(database):
            # Within: no other process commits between the two numbers.
            root, marked_root = note(database, "root"), file_checks.read_mark(self._mark)
            if root is None:
                root = new_root().hex()
                keep(database, "root", root)
                if self._number > 1 or marked_root:
                    lose(database, Loss.CORRUPT, "", 1)
                    _bar(database, self._now())
                _count(database, marked_root)
            elif note(database, "machine") != machine or marked_root > _transactions(database):
                _begin_as_another(database)
                lose(database, Loss.MOVED, "", 1)
                _bar(database, self._now())
                _count(database, marked_root)
            keep(database, "machine", machine)
        self._marked = 0
        self._write_mark(database)
        return bytes.fromhex(root)

    def _write_mark(self, database: sqlite3.Connection) -> None:
        """Have the mark say how many transactions are committed; losing it loses a detection.

        What was committed is read, and read again after it was written: whoever is last among
        several processes leaves the highest number, and no number is ever ahead of the file.
        """
        if database.in_transaction:  # what it counted is not committed yet
            return
        with suppress(sqlite3.Error, OSError):
            while (committed := _transactions(database)) > self._marked:
                self._marked = committed
                file_checks.write_mark(self._mark, committed)

    def _fault(self, error: Exception) -> StateError:
        """Return the error to raise; of damage, only after the next file was begun."""
        if not _is_damage(error):
            return StateError(str(error))
        self._let_go()
        former_root, self.root = self.root, b""
        try:
            file_checks.create_file(self._next)
            # Once mended and put back, the damaged one knows less than its mark: it was restored.
            file_checks.write_mark(self._mark, IMPOSSIBLE_COUNT)
            self._open()
        except (sqlite3.Error, OSError, StateError) as worse:
            self.root = former_root
            return StateError(str(worse))
        return _Damaged(f"the state was damaged and begins anew: {error}")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if self._pid != os.getpid():  # forked without Python's hooks
            self.after_fork()
        with self._lock:
            try:
                yield self._database()
            except (sqlite3.Error, OSError, VeilcountError) as error:
                raise self._fault(error) from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as database:
            with transaction(database):
                before = database.total_changes
                yield database
                if database.total_changes > before:
                    _count(database)
            self._write_mark(database)

    def _read(self, query: str, *values: object) -> list[Any]:
        with self._reading() as database:
            return database.execute(query, values).fetchall()

    def _read_value(self, query: str, *values: object) -> Any | None:
        """Return the first value of the first row; None without a row."""
        rows = self._read(query, *values)
        return rows[0][0] if rows else None


_live: WeakSet[SqliteFile] = WeakSet()


def _for_each_live(call: Callable[[SqliteFile], None]) -> None:
    for state in list(_live):
        call(state)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=partial(_for_each_live, SqliteFile.before_fork),
        after_in_parent=partial(_for_each_live, SqliteFile.after_fork_in_parent),
        after_in_child=partial(_for_each_live, SqliteFile.after_fork),
    )


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )


def _make(database: sqlite3.Connection, name: str) -> None:
    """Set what holds for one connection, and make the tables of a new file."""
    _set_wal(database)
    database.execute("pragma synchronous = full")
    database.execute("pragma fullfsync = on")  # of macOS, whose fsync leaves it to the disk's cache
    database.execute("pragma secure_delete = on")  # a held value that is wiped is not left behind
    database.execute(f"pragma wal_autocheckpoint = {LOG_PAGES}")
    database.execute(f"pragma journal_size_limit = {LOG_BYTES}")
    with transaction(database):
        version = database.execute("pragma user_version").fetchone()[0]
        if version == 0:
            for statement in load_schema().split(";"):
                database.execute(statement)
            database.execute(f"pragma user_version = {VERSION}")
    if version not in {0, VERSION}:
        raise StateError(
            f"{name} was written by another release of veilcount, which this one does not read:"
            " move the file away, and with it its record of what was spent"
        )


def _set_wal(database: sqlite3.Connection) -> None:
    """Set the journal mode. SQLite does not wait for another process there, whatever its timeout:
    of two that make one new file, one would fail [sqlite.org/pragma, journal_mode].
    """
    ends = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            database.execute("pragma journal_mode = wal")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > ends:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            return


@cache
def load_schema() -> str:
    """Return the statements that make the tables."""
    with package_file("schema.sql") as file:
        return file.read_text("utf-8")


def _is_damage(error: Exception) -> bool:
    """Whether the file is damaged, rather than busy, full or not allowed; or we are wrong."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE
    return isinstance(error, VeilcountError)  # a stored report that no report could be


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Do all of it, durably, or nothing; inside another, as a part of that."""
    if database.in_transaction:
        yield database
        return
    database.execute("begin immediate")
    try:
        yield database
        database.execute("commit")
    except BaseException:
        with suppress(sqlite3.Error):  # left open, it would swallow whatever is written later
            database.execute("rollback")
        raise


def note(database: sqlite3.Connection, name: str) -> str | None:
    """Return what was kept under a name."""
    row = database.execute("select value from note where name = ?", (name,)).fetchone()
    return row[0] if row else None


def keep(database: sqlite3.Connection, name: str, value: str) -> None:
    """Keep something under a name."""
    database.execute(
        "insert into note values (?, ?) on conflict do update set value = excluded.value",
        (name, value),
    )


def _transactions(database: sqlite3.Connection) -> int:
    """Return how many transactions have changed the file."""
    return int(note(database, "transactions") or 0)


def _count(database: sqlite3.Connection, known: int = 0) -> None:
    """Count a transaction, the next after those of the file and those that its mark knows of."""
    keep(database, "transactions", str(max(_transactions(database), known) + 1))


def lose(database: sqlite3.Connection, loss: Loss, collection: str, count: int) -> None:
    """Add to a count of losses."""
    database.execute(
        "insert into loss values (?, ?, ?)"
        " on conflict do update set count = count + excluded.count",
        (loss.value, collection, count),
    )


def moves(database: sqlite3.Connection) -> tuple[float, ...]:
    """Return when the file was found to be copied, restored or new in place of a damaged one."""
    return tuple(map(float, (note(database, "moved") or "").split()))


def _bar(database: sqlite3.Connection, now: float) -> None:
    """Note a move: of periods that began before, nobody knows what was answered [answer_times]."""
    recent_moves = (*(min(move, now) for move in moves(database)), now)[-MOST_MOVES:]
    keep(database, "moved", " ".join(map(str, recent_moves)))


def _begin_as_another(database: sqlite3.Connection) -> None:
    """Begin with new secrets and without decisions: what was spent stays spent, and since when."""
    for table in ("person", "used", "held", "report", "token"):
        database.execute(f"delete from {table}")  # noqa: S608 - names written above
    database.execute("update coverage set round = round + is_current, is_current = 0")
