"""The intake in SQL: a group is judged and counted, and a row is closed.

Nearly all reports are of rows that are not there yet. So a group's rows are first presumed new:
they are inserted without having been looked up. Where one was there already, or a report is not to
be counted, `RowsUnknown` undoes all, and the group is committed again with its rows looked up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from veilcount_analysis.mechanisms import tally
from veilcount_analysis.series.series import Series

from ..interface import Cell
from ..series_reports import (
    COUNTED,
    Bytes,
    Codes,
    Quota,
    SeriesReports,
    ServiceCounter,
    ServiceCounts,
    coalesce,
    refusal_counts,
)
from ..slot_rules import ListedReports, Row, SeriesState, assign_verdicts, reports_of
from ..transfer_format import bitmap_bytes, encode_numbers, pad_zeros
from .remembered import Remembered, RememberedSeries, ensure_series
from .sql_connection import SqlConnection
from .tallies import PUT_WHOLE, SMALL, SqlTally

_SPENT = "select spent from ledger where series = ? and epoch = ? and row = ?"
#: so many rows are read or written at once; fewer than `LEAST` are read one by one
MOST, LEAST = 100, 8
#: one statement for each number of rows, so that each is prepared once
_SPENT_MANY = [
    f"select row, spent from ledger where series = ? and epoch = ? and row in ({marks})"  # noqa: S608 - question marks
    for marks in (", ".join("?" * many) for many in range(MOST + 1))
]
#: what fails undoes the whole group: so SQLite keeps no copy of the pages of one statement
_INSERT_MANY = [
    f"insert or fail into ledger (series, epoch, row, spent) values {marks}"  # noqa: S608 - question marks
    for marks in (", ".join(["(?, ?, ?, ?)"] * many) for many in range(MOST + 1))
]
_SPEND_MANY = [
    f"{insert} on conflict do update set spent = excluded.spent" for insert in _INSERT_MANY
]
_SPEND_NEW = [f"{insert} on conflict do nothing" for insert in _INSERT_MANY]
_GROW = "replace into new_rows (series, period, rows) values (?, ?, ?)"
_CHARGE = "replace into hourly (hour, series, source, rows) values (?, ?, ?, ?)"
_MOVE = "replace into spent_rows (series, epoch, rows) values (?, ?, ?)"


#: adds to a service counter
COUNT = (
    "insert into service_counter (what, fingerprint, period, word, times) values (?, ?, ?, ?, ?)"
    " on conflict do update set times = times + excluded.times"
)


class RowsUnknown(Exception):
    """Rows have to be looked up: not all of a group are new, or not all reports are counted."""


def unique_rows(keys: Iterable[Row]) -> Iterable[Row]:
    """Return each row once: a hostile body repeats one a thousand times."""
    return dict.fromkeys(keys)


class _NewRows(dict[Row, int]):
    """The rows of a series, all presumed new."""

    def __missing__(self, key: Row) -> int:
        return 0

    def look_up(self, keys: Iterable[Row]) -> None:
        """Look up nothing."""


class _Rows(dict[Row, int]):
    """The rows of a series: looked up many at once, or else one by one."""

    def __init__(self, database: SqlConnection, number: int) -> None:
        self._database = database
        self._number = number

    def __missing__(self, key: Row) -> int:
        row = self._database.execute(_SPENT, (self._number, *key)).fetchone()
        spent = int.from_bytes(row[0], "little") if row else 0
        self[key] = spent
        return spent

    def look_up(self, keys: Iterable[Row]) -> None:
        """Learn what rows have spent, where there are enough of one epoch."""
        epochs = defaultdict(list)
        for epoch, row in unique_rows(keys):
            epochs[epoch].append(row)
        for epoch, row_numbers in epochs.items():
            for first in range(0, len(row_numbers), MOST):
                self._look_up(epoch, row_numbers[first : first + MOST])

    def _look_up(self, epoch: int, wanted: list[bytes]) -> None:
        if len(wanted) < LEAST:
            return
        query = _SPENT_MANY[len(wanted)]
        rows = dict(self._database.execute(query, (self._number, epoch, *wanted)).fetchall())
        for row in wanted:
            if (epoch, row) not in self:  # or it has spent something in this very group
                self[epoch, row] = int.from_bytes(rows.get(row, b""), "little")


def commit_group(
    database: SqlConnection,
    remembered: Remembered,
    group: Sequence[SeriesReports],
    counts: ServiceCounts,
    *,
    presumed_new: bool,
) -> list[Codes]:
    """Judge and count a group; RowsUnknown: the rows of this one cannot be presumed new."""
    turns: dict[str, _Turn] = {}
    verdicts: dict[int, Codes] = {}
    for coalesced in coalesce(group):
        reports, codes = coalesced.reports, list[int]()
        listed = reports_of(reports)
        for part in reports.parts:
            fingerprint = part.series.fingerprint
            turn = turns.get(fingerprint)
            if turn is None:
                series = remembered.series(database, part.series)
                rows = _NewRows() if presumed_new else _Rows(database, series.number)
                turn = turns[fingerprint] = _Turn(series, rows, reports.messages)
            codes += turn.judge(part.quota, listed[part.rows])
        table_codes = np.array(codes, np.uint8)
        if presumed_new and (table_codes != COUNTED).any():
            raise RowsUnknown
        verdicts.update(coalesced.members(group, table_codes))
    _write(database, list(turns.values()), presumed_new=presumed_new)
    counted = Counter(counts)
    for turn in turns.values():
        turn.add_refused(counted)
    database.executemany(COUNT, [(*counter, times) for counter, times in counted.items() if times])
    return [verdicts[place] for place in range(len(group))]


def close_row(database: SqlConnection, series: Series, epochs: Iterable[int], row: bytes) -> bool:
    """Set all slots of a row, wherever it stands."""
    number, dropped = ensure_series(database, series.fingerprint)
    spent = ((1 << series.bits) - 1).to_bytes(bitmap_bytes(series.bits), "little")
    closed = [
        database.execute(
            "update ledger set spent = ? where series = ? and epoch = ? and row = ?",
            (spent, number, epoch, row),
        ).rowcount
        for epoch in epochs
        if epoch >= dropped
    ]
    return any(closed)


class _Turn:
    """One series in one group: what it changes, as the rows that are written."""

    def __init__(
        self, remembered: RememberedSeries, rows: _NewRows | _Rows, messages: Bytes
    ) -> None:
        self.number = remembered.number
        self.is_small = remembered.counters <= SMALL
        self._remembered = remembered
        self._rows = rows
        self._messages = messages  # of the table that has all reports of the series
        self._state = SeriesState(
            *(remembered.most, remembered.dropped, rows, remembered.new_rows, remembered.hourly)
        )

    def judge(self, quota: Quota | None, reports: ListedReports) -> list[int]:
        """Return the verdicts of reports, and take those that count."""
        self._rows.look_up(row for _, row, *_ in reports)
        return assign_verdicts(self._state, quota, reports)

    def add_refused(self, counted: Counter[ServiceCounter]) -> None:
        """Count what was refused."""
        for (period, code), times in self._state.refused.items():
            fingerprint = self._remembered.series.fingerprint
            counted.update(refusal_counts(fingerprint, period, code, times))

    def spent(self) -> Iterator[tuple[int, int, bytes, bytes]]:
        """Yield the rows that have spent something."""
        for row in self._state.changed:
            bitmap = self._state.spent[row].to_bytes(self._remembered.bitmap_bytes, "little")
            yield self.number, *row, bitmap

    def grown(self) -> Iterator[tuple[int, int, int]]:
        """Yield the periods with new rows."""
        for period in self._state.grown:
            yield self.number, period, self._state.new_rows[period]

    def charged(self) -> Iterator[tuple[int, int, str, int]]:
        """Yield the quotas with new rows."""
        for quota in self._state.charged:
            yield quota.hour, self.number, quota.source, self._state.hourly[quota]

    def moved(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield the histograms that have changed."""
        histograms = self._remembered.spent_rows
        for (epoch, had, has), rows in self._state.steps.items():
            histogram = histograms[epoch]
            if len(histogram) < has:
                histogram = histograms[epoch] = pad_zeros(histogram, has)
            histogram[has - 1] += rows
            if had:  # rows that have spent nothing are no rows
                histogram[had - 1] -= rows
        for epoch in {epoch for epoch, *_ in self._state.steps}:
            yield self.number, epoch, encode_numbers(histograms[epoch])

    def counted(self) -> Iterator[tuple[Cell, Bytes]]:
        """Yield the messages of each cell."""
        for cell, places in self._state.counted.items():
            whole = len(places) == len(self._messages)
            yield cell, self._messages if whole else self._messages.take(places, 0)

    def small_tallies(self) -> Iterator[tuple[int, int, int, int, bytes]]:
        """Yield small tallies that have grown, and by how many reports."""
        of, tallies = self._remembered, self._remembered.tallies
        for cell, messages in self.counted():
            counters = tallies[cell]
            counters += tally(of.series.collection, messages)
            yield self.number, *cell, len(messages), encode_numbers(counters)

    def add_parts(self, database: SqlConnection) -> None:
        """Add what has come to large tallies."""
        for cell, messages in self.counted():
            SqlTally(database, self.number, cell).add(self._remembered.series, messages)


def _write(database: SqlConnection, turns: Sequence[_Turn], *, presumed_new: bool) -> None:
    """Write what a group changed: a statement for all series costs little more than for one."""
    _spend(database, [row for turn in turns for row in turn.spent()], presumed_new=presumed_new)
    for statement, rows in (
        (_GROW, [row for turn in turns for row in turn.grown()]),
        (_CHARGE, [row for turn in turns for row in turn.charged()]),
        (_MOVE, [row for turn in turns for row in turn.moved()]),
        (PUT_WHOLE, [row for turn in turns if turn.is_small for row in turn.small_tallies()]),
    ):
        database.executemany(statement, rows)
    for turn in turns:
        if not turn.is_small:
            turn.add_parts(database)


def _spend(
    database: SqlConnection, spent: Sequence[tuple[int, int, bytes, bytes]], *, presumed_new: bool
) -> None:
    # Many a statement, not one: between two, other threads take the interpreter's lock.
    statements = _SPEND_NEW if presumed_new else _SPEND_MANY
    spent = sorted(spent)  # as the ledger is: what is on one page is written by one statement
    for first in range(0, len(spent), MOST):
        some = spent[first : first + MOST]
        inserted = database.execute(statements[len(some)], list(chain.from_iterable(some)))
        if presumed_new and inserted.rowcount != len(some):
            raise RowsUnknown
