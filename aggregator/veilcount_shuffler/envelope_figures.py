"""How envelopes were answered, shown by whole days: never at which second, and of nobody.

Whoever scrapes `/metrics` stores each figure with its instant. A counter that moved with an
envelope would store when a device sent; so a day's answers are counted together, and shown once the
day is over. How many were held is shown in two digits: how many a crowd has, its record alone says.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime
from pathlib import Path

from .errors import StateUnavailable

FILE = "figures.sqlite"
HELD = "held"
DIGITS = 2
BUSY_SECONDS = 10.0
_SCHEMA = """
create table if not exists answers (
    day integer not null, answer text not null, number integer not null,
    primary key (day, answer)
) without rowid"""
_ADD = """
insert into answers values (?, ?, ?)
on conflict do update set number = number + excluded.number"""


class EnvelopeFigures:
    """The answers of one worker, added to those of all. Thread-safe."""

    def __init__(self, store: Path, clock: Callable[[], datetime]) -> None:
        """Count for a store; its file is made by the first flush."""
        self._path = store / FILE
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: Counter[tuple[int, str]] = Counter()

    def count(self, answer: str) -> None:
        """Count an answer: `held`, or the type of a problem."""
        with self._lock:
            self._counts[self._clock().date().toordinal(), answer] += 1

    def flush(self) -> None:
        """Add what was counted to the file; what it does not take is added the next time."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            with self._database() as database, database:
                database.executemany(_ADD, [(*key, number) for key, number in counts.items()])
        except (sqlite3.Error, OSError) as error:
            with self._lock:
                self._counts.update(counts)
            raise StateUnavailable(str(error)) from error

    def totals(self) -> Counter[str]:
        """Return how many envelopes of the days that are over were answered how."""
        try:
            with self._database() as database:
                rows = database.execute("select day, answer, number from answers").fetchall()
        except (sqlite3.Error, OSError) as error:
            raise StateUnavailable(str(error)) from error
        totals: Counter[str] = Counter()
        for day, answer, number in rows:
            if date.fromordinal(day) < self._clock().date():
                totals[answer] += rounded(number) if answer == HELD else number
        return totals

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(self._path, timeout=BUSY_SECONDS)) as database:
            database.execute(_SCHEMA)
            yield database


def rounded(number: int) -> int:
    """Return a number in two digits, the rest zeros, never more than it was."""
    unit: int = 10 ** max(len(str(number)) - DIGITS, 0)
    return number // unit * unit
