"""One writer at a time among processes, first come, first served.

SQLite's own lock is tried again and again until it is free, which the newest wins as often as the
oldest: with two busy processes one of them waits for many of the other's transactions. The
kernel's queue of flock(2) is fair. It has no time limit, so a thread waits in it, and the
caller waits for the thread.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path
from threading import Event, Lock, Thread

from veilcount_serving.durable_files import file_identity
from veilcount_serving.posix import LOCK_EX, LOCK_NB, LOCK_UN, flock

from ...errors import StoreUnavailable

#: for which another process may go on closing the store
SOLE_SECONDS = 1.0


class FileLock:
    """A lock on a file next to the store; released when its process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self, seconds: float) -> None:
        """Wait for it, so long at most; a lock on a file that was removed is none."""
        self._take(seconds)
        while not self._has_its_name():
            self.close()
            self._take(seconds)

    def release(self) -> None:
        """Release it to the next one."""
        if self._descriptor is not None:
            flock(self._descriptor, LOCK_UN)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _take(self, seconds: float) -> None:
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            flock(self._descriptor, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            self._queue(self._descriptor, seconds)

    def _has_its_name(self) -> bool:
        """Whether the next process to open the file meets this lock."""
        if self._descriptor is None:
            return False
        return file_identity(self._descriptor) == file_identity(self._path)

    def _queue(self, descriptor: int, seconds: float) -> None:
        turn = _Turn(descriptor)
        Thread(target=turn.wait, daemon=True, name="veilcount-store-lock").start()
        if not turn.came(seconds):
            self._descriptor = None  # the thread closes it
            raise StoreUnavailable(
                f"{self._path}: another process has been writing for {seconds:g} s: look whether it"
                " hangs"
            )


class SoleLock(FileLock):
    """The lock of a process that has the store to itself, where there is no flock(2).

    SQLite's own, of any system, on the same file: from the first call until the store is closed.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._owner: sqlite3.Connection | None = None

    def take(self, seconds: float) -> None:
        """Take it, unless this process has it; another one may be about to release it."""
        if self._owner is not None:
            return
        wait = min(seconds, SOLE_SECONDS)
        owner = sqlite3.connect(
            self._path, timeout=wait, isolation_level=None, check_same_thread=False
        )
        try:
            owner.execute("pragma journal_mode = memory")  # nothing is written: no third file
            owner.execute("begin exclusive")
        except sqlite3.OperationalError as error:
            owner.close()
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            raise StoreUnavailable(
                f"{self._path}: another process has the store open, and on {sys.platform} a store"
                " is one process's: end that one, or give another --store"
            ) from error
        self._owner = owner

    def close(self) -> None:
        """Release it."""
        if self._owner is not None:
            self._owner.close()
            self._owner = None


class _Turn:
    """A place in the kernel's queue, which its owner may abandon."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._came = Event()
        self._deciding = Lock()
        self._abandoned = False

    def wait(self) -> None:
        """Wait for the turn, and pass it on if nobody wants it any more."""
        flock(self._descriptor, LOCK_EX)
        with self._deciding:
            if not self._abandoned:
                self._came.set()
                return
        flock(self._descriptor, LOCK_UN)  # before closing: a forked child may have it open as well
        os.close(self._descriptor)

    def came(self, seconds: float) -> bool:
        """Whether the turn came in time; if not, it is abandoned."""
        if self._came.wait(seconds):
            return True
        with self._deciding:
            self._abandoned = not self._came.is_set()
            return not self._abandoned
