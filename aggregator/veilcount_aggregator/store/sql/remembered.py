"""What the intake has read of a database and written to it, as long as nobody else writes there.

Every group needs the same few rows of each series: its number, the new pseudonyms of a period, the
histogram of an epoch, the counters of a small tally. They are read once, and from then on only
written. A transaction owns what is remembered: if it fails, all of it is forgotten.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from veilcount_analysis.series.series import Series

from ..interface import Cell
from ..series_reports import Counters, Quota
from ..transfer_format import decode_numbers
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


class _Numbers:
    """Numbers of a series, each read when it is first needed."""

    def __init__(self, database: SqlConnection, number: int) -> None:
        self._database = database
        self._number = number


class NewRows(_Numbers, dict[int, int]):
    """The new rows of each period."""

    def __missing__(self, period: int) -> int:
        row = self._database.execute(_NEW_ROWS, (self._number, period)).fetchone()
        self[period] = row[0] if row else 0
        return self[period]


class HourlyRows(_Numbers, dict[Quota, int]):
    """The new rows of each quota."""

    def __missing__(self, quota: Quota) -> int:
        key = (quota.hour, self._number, quota.source)
        row = self._database.execute(_HOURLY, key).fetchone()
        if row is None:
            old = quota.hour - _HOURS_KEPT
            self._database.execute("delete from hourly where hour <= ?", (old,))
        self[quota] = row[0] if row else 0
        return self[quota]


class SpentRows(_Numbers, dict[int, Counters]):
    """How many rows of each epoch have spent 1, 2, .. slots."""

    def __missing__(self, epoch: int) -> Counters:
        row = self._database.execute(_SPENT_ROWS, (self._number, epoch)).fetchone()
        self[epoch] = decode_numbers(row[0] if row else b"")
        return self[epoch]


class SmallTallies(_Numbers, dict[Cell, Counters]):
    """The counters of each small tally."""

    def __missing__(self, cell: Cell) -> Counters:
        self[cell] = SqlTally(self._database, self._number, cell).whole()
        return self[cell]


@dataclass(slots=True)
class RememberedSeries:
    """One series as the last group left it."""

    number: int
    dropped: int
    new_rows: NewRows
    hourly: HourlyRows
    spent_rows: SpentRows
    tallies: SmallTallies

    @property
    def entries(self) -> int:
        """How many numbers and tallies are in memory."""
        numbers = len(self.new_rows) + len(self.hourly) + len(self.spent_rows)
        return numbers + len(self.tallies)


class Remembered:
    """The series that groups have touched, as of the moment of the last one."""

    def __init__(self) -> None:
        self.moment: Hashable = None  # that a store compares with its own
        self._series: dict[str, RememberedSeries] = {}

    @property
    def is_full(self) -> bool:
        """Whether it is to be forgotten."""
        return sum(series.entries for series in self._series.values()) > MOST_ENTRIES

    def series(self, database: SqlConnection, series: Series) -> RememberedSeries:
        """Return a series: from memory, or read for the first time."""
        remembered = self._series.get(series.fingerprint)
        if remembered is None:
            number, dropped = ensure_series(database, series.fingerprint)
            remembered = RememberedSeries(
                number,
                dropped,
                NewRows(database, number),
                HourlyRows(database, number),
                SpentRows(database, number),
                SmallTallies(database, number),
            )
            self._series[series.fingerprint] = remembered
        return remembered
