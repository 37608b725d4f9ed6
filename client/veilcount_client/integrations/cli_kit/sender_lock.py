"""The lock of the sender: one process at a time delivers what an app's commands have stored.

It is SQLite's lock on an empty file: the same on every platform, and the system releases it however
its process ends. A file with a process id would outlive a crash, and name another process later.
The file's time is that of the last command which had something to send.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

FILE = "sender.lock"
PATIENCE = 1.0  # seconds: outlasts a command that looks whether the lock is taken
STARTING = 5.0  # seconds that a sender may take from its call until it has the lock
POLL = 0.05


class SenderLock:
    """The lock of one app and user, in a directory that is theirs."""

    def __init__(self, directory: Path) -> None:
        """Name the file; it is made when it is first needed."""
        self.directory, self._path = directory, directory / FILE

    @contextmanager
    def acquire(self, patience: float = PATIENCE) -> Iterator[bool]:
        """Yield whether this process has the lock; it has it until the block ends."""
        with closing(sqlite3.connect(self._path, timeout=patience, isolation_level=None)) as file:
            yield _lock(file)

    @property
    def is_taken(self) -> bool:
        """Whether a sender runs."""
        if not self._path.exists():
            return False
        with self.acquire(patience=0) as is_ours:
            return not is_ours

    def is_taken_soon(self) -> bool:
        """Whether a sender runs; one that was called just now may still be starting."""
        while not self.is_taken:
            if not self._path.exists() or time.time() - self.called_at() > STARTING:
                return False
            time.sleep(POLL)
        return True

    def is_free_within(self, seconds: float) -> bool:
        """Wait for a sender to end; return whether none runs any more."""
        ends = time.monotonic() + seconds
        while self.is_taken:
            if time.monotonic() > ends:
                return False
            time.sleep(POLL)
        return True

    def call(self) -> None:
        """Have the sender stay for as long again: there is something to send."""
        self._path.touch(0o600)

    def called_at(self) -> float:
        """Return when it was called last, by the file system's clock."""
        return self._path.stat().st_mtime


def _lock(file: sqlite3.Connection) -> bool:
    try:
        file.execute("begin exclusive")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            return False
        raise
    return True
