"""Memory of counters in SQL: whether a report's counters still fit, checked before any is written.

A small tally is accounted whole when it is made. A large one grows by a part in each group, 16
bytes for each counter that is touched, until all its counters are there: what is added from then on
is folded into them, and needs no more. What is really there is accounted by triggers [schema].
"""

from __future__ import annotations

import sqlite3

from ...mechanisms import handler_of
from ...series.series import Series
from ..interface import Cell
from ..memory_limit import COUNTER_BYTES, TALLY_BYTES, MemoryLimits
from .schema import PART_BYTES
from .tallies import SMALL, TOP

_HELD = "select length(counters) from tally where series = ? and period = ? and segment = ?"
_ALL_THERE = (
    "select 1 from part where series = ? and period = ? and segment = ? and level = ? and dense"
)
_USED = "select bytes from series where number = ?"
_TOTAL = "select sum(bytes) from series"


class SeriesMemoryBudget:
    """What one series' counters may still take, inside a transaction."""

    def __init__(
        self, database: sqlite3.Connection, number: int, series: Series, store: StoreMemoryBudget
    ) -> None:
        self._database = database
        self._number = number
        self._series = series
        self._store = store
        self._used = int(database.execute(_USED, (number,)).fetchone()[0])
        self._next: dict[Cell, int] = {}  # what the next report of a cell needs

    def fits(self, cell: Cell, limits: MemoryLimits) -> bool:
        """Reserve what a report's counters need, and return whether it is there."""
        needs = self._next.get(cell)
        if needs is None:
            needs = self._first(cell)
        if needs and (self._used + needs > limits.series or not self._store.take(needs, limits)):
            self._next[cell] = needs
            return False
        self._used += needs
        self._next[cell] = self._each() if needs else 0
        return True

    def _first(self, cell: Cell) -> int:
        """Return what a group's first report of a cell needs."""
        here = (self._number, *cell)
        found = self._database.execute(_HELD, here).fetchone()
        made = 0 if found else TALLY_BYTES
        if self._series.counters <= SMALL:
            return made + COUNTER_BYTES * self._series.counters - (found[0] if found else 0)
        if self._database.execute(_ALL_THERE, (*here, TOP)).fetchone():
            return 0
        return made + PART_BYTES + self._each()

    def _each(self) -> int:
        """Return what each further report of a cell needs."""
        if self._series.counters <= SMALL:
            return 0
        touched = handler_of(self._series.collection.mechanism).counters_per_report
        return 2 * COUNTER_BYTES * touched


class StoreMemoryBudget:
    """What the counters of all series may still take, inside a transaction."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._used: int | None = None

    def take(self, needs: int, limits: MemoryLimits) -> bool:
        """Reserve bytes, and return whether they are there."""
        if limits.store is None:
            return True
        if self._used is None:
            self._used = int(self._database.execute(_TOTAL).fetchone()[0] or 0)
        if self._used + needs > limits.store:
            return False
        self._used += needs
        return True
