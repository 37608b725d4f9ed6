"""The outcome of the last writes and page checks of a SQLite store, in public words.

A failure is kept until a later write succeeds, so that a probe between two failing commits does not
call the store ready: for `MEMORY_SECONDS` only where the later write is the small one of a probe,
since a store without traffic must come back too. Damage is kept until the file is another one.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable

from ...errors import StoreError, StoreFull

PROBE_SECONDS = 5.0
MEMORY_SECONDS = 15.0
PAGES_SECONDS = 600.0
#: how long a check of the pages may take: a probe waits for two seconds
PAGES_FOR_SECONDS = 0.5

STEPS = 100_000  # of SQLite's machine, between two looks at the clock

_TABLES = "select name from sqlite_schema where type = 'table' order by name"

FULL = "the disk is full: free some space"
DAMAGED = "a page of the store is damaged: restore a backup"


class WriteHealth:
    """The trouble of one open store, and when to look for it again."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._due: dict[str, float] = {}
        self.reset()

    def reset(self) -> None:
        """Know nothing: the file is another one."""
        self._trouble = ""
        self._until = 0.0
        self._damaged = False

    @property
    def trouble(self) -> str:
        """Why the store cannot be written, or ""."""
        return DAMAGED if self._damaged else self._trouble

    def wrote(self, *, probe: bool) -> None:
        """A write has succeeded."""
        if self._trouble and not (probe and self._seconds() < self._until):
            self._trouble = ""

    def failed(self, error: StoreError, cause: Exception, *, probe: bool) -> None:
        """A write has failed."""
        # SQLite's or the system's own name: never its words, which hold a path
        name = getattr(cause, "sqlite_errorname", type(cause).__name__)
        self._trouble = FULL if isinstance(error, StoreFull) else f"a write failed: {name}"
        if not probe:
            self._until = self._seconds() + MEMORY_SECONDS

    def damaged(self) -> None:
        """A page was found damaged."""
        self._damaged = True

    def due(self, what: str, every: float) -> bool:
        """Whether something is to be done now, once in so many seconds, by one asker."""
        with self._lock:
            now = self._seconds()
            if now < self._due.get(what, now):
                return False
            self._due[what] = now + every
            return True


def is_damaged(database: sqlite3.Connection, seconds: float) -> bool | None:
    """Whether a damaged page was found within so many seconds; None: not all pages were read.

    `veilcount doctor --deep` reads all.
    """
    ends = time.monotonic() + seconds
    database.set_progress_handler(lambda: int(time.monotonic() > ends), STEPS)
    try:
        for (table,) in database.execute(_TABLES).fetchall():
            if database.execute(f"pragma quick_check('{table}')").fetchone() != ("ok",):
                return True
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return None
    finally:
        database.set_progress_handler(None, 0)
    return False
