"""Read-only connections, a bounded number of them, each used by one thread at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Semaphore
from time import monotonic

from ...errors import StoreUnavailable

MOST = 8


class ReaderPool:
    """A pool of readers; a reading is one snapshot."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], seconds: float) -> None:
        self._connect = connect
        self._seconds = seconds
        self._idle: list[sqlite3.Connection] = []
        self._closed = 0  # how often: a connection of an earlier time is not kept
        self._free = Semaphore(MOST)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read one state of the store."""
        if not self._free.acquire(timeout=self._seconds):
            raise StoreUnavailable(f"{MOST} readers have been busy for {self._seconds:g} s")
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
        for held in range(MOST):
            if not self._free.acquire(timeout=max(0.0, ends - monotonic())):
                for _ in range(held):
                    self._free.release()
                return False
        self.close()
        return True

    def go_on(self) -> None:
        """Accept readers again."""
        self._free.release(MOST)

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
