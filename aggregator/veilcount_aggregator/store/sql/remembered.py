"""What the intake has read of a database and written to it, as long as nobody else writes there.

Every group needs the same few rows of each series: its number, the new pseudonyms of a period, the
histogram of an epoch, the counters of a small tally. They are read once, and from then on only
written. A transaction owns what is remembered: if it fails, all of it is forgotten.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from veilcount_analysis.series.series import Series

from ..interface import Cell
from ..series_reports import Counters, Quota
from ..transfer_format import bitmap_bytes, decode_numbers, pad_zeros
from .sql_connection import SqlConnection
from .tallies import SqlTally

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

#: with more in memory, all is forgotten
MOST_BYTES = 8 << 20
#: what a number takes with its key; a tally takes that, and its counters
NUMBER_BYTES = 200

_SERIES = "select number, dropped from series where fingerprint = ?"
_NEW_ROWS = "select rows from new_rows where series = ? and period = ?"
_SPENT_ROWS = "select rows from spent_rows where series = ? and epoch = ?"
_HOURLY = "select rows from hourly where hour = ? and series = ? and source = ?"
#: hours whose quotas are kept: the running one, and one for clocks that differ
_HOURS_KEPT = 2


def find_series(database: SqlConnection, fingerprint: str) -> tuple[int, int] | None:
    """Return the number of a series and its first epoch that was not dropped."""
    row: tuple[int, int] | None = database.execute(_SERIES, (fingerprint,)).fetchone()
    return row


def ensure_series(database: SqlConnection, fingerprint: str) -> tuple[int, int]:
    """Find a series; one that is new here gets a number."""
    numbers = find_series(database, fingerprint)
    if numbers is not None:
        return numbers
    inserted = database.execute("insert into series (fingerprint) values (?)", (fingerprint,))
    return inserted.lastrowid or 0, 0


@dataclass(slots=True)
class Memory:
    """How much is remembered."""

    size: int = 0  # bytes


class _Numbers(dict[_Key, _Value], ABC):
    """Numbers of a series, each read when it is first needed."""

    def __init__(self, database: SqlConnection, number: int, memory: Memory) -> None:
        self._database = database
        self._number = number
        self._memory = memory

    def __missing__(self, key: _Key) -> _Value:
        value = self[key] = self._read(key)
        self._memory.size += NUMBER_BYTES + (value.nbytes if isinstance(value, np.ndarray) else 0)
        return value

    @abstractmethod
    def _read(self, key: _Key) -> _Value:
        """Read a number from the database."""


class NewRows(_Numbers[int, int]):
    """The new rows of each period."""

    def _read(self, period: int) -> int:
        row = self._database.execute(_NEW_ROWS, (self._number, period)).fetchone()
        rows: int = row[0] if row else 0
        return rows


class HourlyRows(_Numbers[Quota, int]):
    """The new rows of each quota."""

    def _read(self, quota: Quota) -> int:
        key = (quota.hour, self._number, quota.source)
        row = self._database.execute(_HOURLY, key).fetchone()
        if row is None:
            old = quota.hour - _HOURS_KEPT
            self._database.execute("delete from hourly where hour <= ?", (old,))
        rows: int = row[0] if row else 0
        return rows


class SpentRows(_Numbers[int, Counters]):
    """How many rows of each epoch have spent 1, 2, .. slots."""

    def _read(self, epoch: int) -> Counters:
        row = self._database.execute(_SPENT_ROWS, (self._number, epoch)).fetchone()
        return decode_numbers(row[0] if row else b"")


class SmallTallies(_Numbers[Cell, Counters]):
    """The counters of each small tally."""

    def __init__(self, database: SqlConnection, number: int, memory: Memory, counters: int) -> None:
        super().__init__(database, number, memory)
        self._counters = counters

    def _read(self, cell: Cell) -> Counters:
        whole = SqlTally(self._database, self._number, cell).whole()
        return pad_zeros(whole, self._counters)


@dataclass(slots=True)
class RememberedSeries:
    """One series as the last group left it; what of it never changes is derived once."""

    series: Series
    most: int
    counters: int
    bitmap_bytes: int
    number: int
    dropped: int
    new_rows: NewRows
    hourly: HourlyRows
    spent_rows: SpentRows
    tallies: SmallTallies


class Remembered:
    """The series that groups have touched, as of the moment of the last one."""

    def __init__(self) -> None:
        self.moment: Hashable = None  # that a store compares with its own
        self._memory = Memory()
        self._series: dict[str, RememberedSeries] = {}

    @property
    def is_full(self) -> bool:
        """Whether it is to be forgotten."""
        return self._memory.size > MOST_BYTES

    def series(self, database: SqlConnection, series: Series) -> RememberedSeries:
        """Return a series: from memory, or read for the first time."""
        remembered = self._series.get(series.fingerprint)
        if remembered is None:
            number, dropped = ensure_series(database, series.fingerprint)
            place = (database, number, self._memory)
            remembered = self._series[series.fingerprint] = RememberedSeries(
                *(series, series.most, series.counters, bitmap_bytes(series.bits)),
                *(number, dropped),
                NewRows(*place),
                HourlyRows(*place),
                SpentRows(*place),
                SmallTallies(*place, series.counters),
            )
        return remembered
