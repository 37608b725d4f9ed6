"""What the intake has read of a database and written to it, as long as nobody else writes there.

Every group needs the same few rows of each series: its number, the new pseudonyms of a period, the
histogram of an epoch, the counters of a small tally. They are read once, and from then on only
written. A transaction owns what is remembered: if it fails, all of it is forgotten.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import TypeVar

from veilcount_analysis.series.series import Series

from ..interface import Cell
from ..series_reports import Counters, Quota
from ..transfer_format import bitmap_bytes, decode_numbers
from .sql_connection import SqlConnection
from .tallies import SqlTally

#: with more numbers and tallies in memory, all are forgotten: 8 MB of the largest tallies
MOST_ENTRIES = 2048

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


K, V = TypeVar("K"), TypeVar("V")


class _Numbers(dict[K, V]):
    """Numbers of a series, each read when it is first needed."""

    def __init__(self, database: SqlConnection, number: int, entries: list[object]) -> None:
        super().__init__()
        self._database = database
        self._number = number
        self._entries = entries

    def __missing__(self, key: K) -> V:
        self._entries.append(key)
        value = self[key] = self._read(key)
        return value

    @abstractmethod
    def _read(self, key: K) -> V:
        """Return what the database has."""


class NewRows(_Numbers[int, int]):
    """The new rows of each period."""

    def _read(self, period: int) -> int:
        row = self._database.execute(_NEW_ROWS, (self._number, period)).fetchone()
        return row[0] if row else 0


class HourlyRows(_Numbers[Quota, int]):
    """The new rows of each quota."""

    def _read(self, quota: Quota) -> int:
        key = (quota.hour, self._number, quota.source)
        row = self._database.execute(_HOURLY, key).fetchone()
        if row is None:
            old = quota.hour - _HOURS_KEPT
            self._database.execute("delete from hourly where hour <= ?", (old,))
        return row[0] if row else 0


class SpentRows(_Numbers[int, Counters]):
    """How many rows of each epoch have spent 1, 2, .. slots."""

    def _read(self, epoch: int) -> Counters:
        row = self._database.execute(_SPENT_ROWS, (self._number, epoch)).fetchone()
        return decode_numbers(row[0] if row else b"")


class SmallTallies(_Numbers[Cell, Counters]):
    """The counters of each small tally."""

    def _read(self, cell: Cell) -> Counters:
        return SqlTally(self._database, self._number, cell).whole()


class RememberedSeries:
    """One series as the last group left it; and what never changes, which takes time to derive."""

    def __init__(
        self,
        database: SqlConnection,
        series: Series,
        entries: list[object],
        number: int,
        dropped: int,
    ) -> None:
        self.series = series
        self.number = number
        self.dropped = dropped
        self.most = series.most
        self.counters = series.counters
        self.bitmap_bytes = bitmap_bytes(series.bits)
        self.new_rows = NewRows(database, number, entries)
        self.hourly = HourlyRows(database, number, entries)
        self.spent_rows = SpentRows(database, number, entries)
        self.tallies = SmallTallies(database, number, entries)


class Remembered:
    """The series that groups have touched, as of the moment of the last one."""

    def __init__(self) -> None:
        self.moment: Hashable = None  # that a store compares with its own
        self._series: dict[str, RememberedSeries] = {}
        self._entries: list[object] = []  # of all series

    @property
    def is_full(self) -> bool:
        """Whether it is to be forgotten."""
        return len(self._entries) > MOST_ENTRIES

    def series(self, database: SqlConnection, series: Series) -> RememberedSeries:
        """Return a series: from memory, or read for the first time."""
        remembered = self._series.get(series.fingerprint)
        if remembered is None:
            numbers = ensure_series(database, series.fingerprint)
            remembered = RememberedSeries(database, series, self._entries, *numbers)
            self._series[series.fingerprint] = remembered
        return remembered
