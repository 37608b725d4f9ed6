"""Checkpoints of the write-ahead log, by a connection and a thread of their own.

SQLite would write the log back within a commit, and the slowest commits waited for nothing else. A
checkpoint does not get to the end of the log while commits never pause. So where the log has become
long, the writer writes back the rest, which is short by then, and SQLite begins the log anew; and
where a checkpoint is so slow that the log becomes longer still, the writer waits for it. A reader
that stays delays no commit, but the log grows: a warning says so.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from threading import Thread

from veilcount_serving.errors import system_reason
from veilcount_serving.structured_logging import log_event

#: the log is written back after so many rows, or pages by which the file of the log has grown: a
#: page that many groups touch is written once
WAL_PAGES = 4_000
PAGE = 4096  # bytes
#: pages of a log of which the writer writes back the rest
LONG_PAGES = 2 * WAL_PAGES
#: pages of a log with which the writer waits for a checkpoint, and that somebody has to look at
MOST_PAGES = 4 * LONG_PAGES
WRITE_BACK = "pragma wal_checkpoint(passive)"  # as far as readers allow, and waits for none
SECONDS = 10.0  # how long a checkpoint under way is waited for


class Checkpoints:
    """Those of one writing connection."""

    def __init__(self, database: sqlite3.Connection, log: Path) -> None:
        """Write a log back by a connection that nothing else uses."""
        self._database = database
        self._log = str(log)
        self._thread: Thread | None = None
        self._rows = self._size = 0  # when the last one began
        self._is_long = False
        self._is_reported = False

    def committed(self, writer: sqlite3.Connection) -> None:
        """After a commit: begin a checkpoint if it is time for one."""
        rows, size = writer.total_changes, os.stat(self._log).st_size  # noqa: PTH116 - cheaper
        if self._is_under_way() and (size < MOST_PAGES * PAGE or not self.wait()):
            return
        if self._is_long:
            self._is_long = False
            with suppress(sqlite3.Error):  # as SQLite does with its own: the next one tries again
                writer.execute(WRITE_BACK).fetchone()
        self._size = min(self._size, size)  # cut off
        if rows - self._rows >= WAL_PAGES or size - self._size >= WAL_PAGES * PAGE:
            self._rows, self._size = rows, size
            self._thread = Thread(target=self._write_back, name="veilcount-checkpoint", daemon=True)
            self._thread.start()

    def wait(self) -> bool:
        """Wait until none is under way; False: the disk hangs."""
        if self._thread is not None:
            self._thread.join(SECONDS)
        return not self._is_under_way()

    def close(self) -> None:
        """Close the connection, before the writer's: the last one removes the log."""
        if self.wait():  # else the thread keeps it
            with suppress(sqlite3.Error):
                self._database.close()

    def _is_under_way(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _write_back(self) -> None:
        try:
            _, logged, saved = self._database.execute(WRITE_BACK).fetchone()
        except sqlite3.Error as error:
            self._report(f"it cannot be written back: {system_reason(error)}")
            return
        self._is_long = logged >= LONG_PAGES
        if logged - saved < MOST_PAGES:
            self._is_reported = False
        else:
            self._report("a process reads an older state: end it; `veilcount doctor` tells which")

    def _report(self, reason: str) -> None:
        if not self._is_reported:
            self._is_reported = True
            log_event("write-ahead log grows", logging.WARNING, store="sqlite", reason=reason)
