"""The intake in SQL: a group is judged and counted, and a row is closed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from veilcount_analysis.series.series import Series

from ..series_reports import Codes, Quota, SeriesReports, ServiceCounts, coalesce, refusal_counts
from ..slot_rules import Row, SeriesState, assign_verdicts, histogram_change, row_keys
from ..transfer_format import bitmap_bytes, decode_numbers, encode_numbers, pad_zeros
from .sql_connection import SqlConnection
from .tallies import SqlTally

_SPENT = "select spent from ledger where series = ? and epoch = ? and row = ?"
#: so many rows are read or written at once; fewer than `LEAST` are read one by one
MOST, LEAST = 100, 8
#: one statement for each number of rows, so that each is prepared once
_SPENT_MANY = [
    f"select row, spent from ledger where series = ? and epoch = ? and row in ({marks})"  # noqa: S608 - question marks
    for marks in (", ".join("?" * many) for many in range(MOST + 1))
]
_SPEND_MANY = [
    "insert into ledger (series, epoch, row, spent)"  # noqa: S608 - question marks
    f" values {marks} on conflict do update set spent = excluded.spent"
    for marks in (", ".join(["(?, ?, ?, ?)"] * many) for many in range(MOST + 1))
]
_NEW_ROWS = "select rows from new_rows where series = ? and period = ?"
_GROW = "replace into new_rows (series, period, rows) values (?, ?, ?)"
_HOURLY = "select rows from hourly where hour = ? and series = ? and source = ?"
_CHARGE = "replace into hourly (hour, series, source, rows) values (?, ?, ?, ?)"
#: hours whose quotas are kept: the running one, and one for clocks that differ
_HOURS_KEPT = 2
_SPENT_ROWS = "select rows from spent_rows where series = ? and epoch = ?"
_MOVE = "replace into spent_rows (series, epoch, rows) values (?, ?, ?)"


#: adds to a service counter
COUNT = (
    "insert into service_counter (what, fingerprint, period, word, times) values (?, ?, ?, ?, ?)"
    " on conflict do update set times = times + excluded.times"
)


class _Lookup:
    """What a series has spent, looked up when a key is first read."""

    def __init__(self, database: SqlConnection, number: int) -> None:
        self._database = database
        self._number = number


def unique_rows(keys: Iterable[Row]) -> Iterable[Row]:
    """Return each row once: a hostile body repeats one a thousand times."""
    return dict.fromkeys(keys)


class _Rows(_Lookup, dict[Row, int]):
    """The rows of a series: looked up many at once, or else one by one."""

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


class _Periods(_Lookup, dict[int, int]):
    """The new rows of each period of a series."""

    def __missing__(self, period: int) -> int:
        row = self._database.execute(_NEW_ROWS, (self._number, period)).fetchone()
        self[period] = row[0] if row else 0
        return self[period]


class _Hourly(_Lookup, dict[Quota, int]):
    """What of each quota is spent."""

    def __missing__(self, quota: Quota) -> int:
        key = (quota.hour, self._number, quota.source)
        row = self._database.execute(_HOURLY, key).fetchone()
        if row is None:
            old = quota.hour - _HOURS_KEPT
            self._database.execute("delete from hourly where hour <= ?", (old,))
        self[quota] = row[0] if row else 0
        return self[quota]


def find_series(database: SqlConnection, fingerprint: str) -> tuple[int, int] | None:
    """Return the number of a series and its first epoch that was not dropped."""
    row: tuple[int, int] | None = database.execute(
        "select number, dropped from series where fingerprint = ?", (fingerprint,)
    ).fetchone()
    return row


def ensure_series(database: SqlConnection, fingerprint: str) -> tuple[int, int]:
    """Return the same; a series that is new here gets a number."""
    numbers = find_series(database, fingerprint)
    if numbers is not None:
        return numbers
    inserted = database.execute("insert into series (fingerprint) values (?)", (fingerprint,))
    return inserted.lastrowid or 0, 0


def commit_group(
    database: SqlConnection, group: Sequence[SeriesReports], counts: ServiceCounts
) -> list[Codes]:
    """Judge and count a group."""
    states: dict[str, tuple[int, SeriesState, _Rows]] = {}
    verdicts: dict[int, Codes] = {}
    for joined in coalesce(group):
        reports = joined.reports
        name = reports.series.fingerprint
        if name not in states:
            states[name] = _turn(database, reports.series)
        _, state, held = states[name]
        rows = row_keys(reports)
        held.look_up(rows)
        verdicts.update(joined.parts(group, assign_verdicts(state, reports, rows)))
    counted = Counter(counts)
    _write(database, [(number, state) for number, state, _ in states.values()])
    for _, state, _ in states.values():
        for (period, code), times in state.refused.items():
            counted.update(refusal_counts(state.series.fingerprint, period, code, times))
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


def _turn(database: SqlConnection, series: Series) -> tuple[int, SeriesState, _Rows]:
    number, dropped = ensure_series(database, series.fingerprint)
    rows = _Rows(database, number)
    periods, hourly = _Periods(database, number), _Hourly(database, number)
    return number, SeriesState(series, dropped, rows, periods, hourly), rows


def _write(database: SqlConnection, states: Sequence[tuple[int, SeriesState]]) -> None:
    """Write what a group changed: a statement for all series costs little more than for one."""
    spent = [
        (number, *row, state.spent[row].to_bytes(bitmap_bytes(state.series.bits), "little"))
        for number, state in states
        for row in state.changed
    ]
    # Many a statement, not one: between two, other threads take the interpreter's lock.
    for first in range(0, len(spent), MOST):
        some = spent[first : first + MOST]
        database.execute(_SPEND_MANY[len(some)], list(chain.from_iterable(some)))
    database.executemany(
        _GROW,
        [
            (number, period, state.new_rows[period])
            for number, state in states
            for period in state.grown
        ],
    )
    database.executemany(
        _CHARGE,
        [
            (quota.hour, number, quota.source, state.hourly[quota])
            for number, state in states
            for quota in state.charged
        ],
    )
    for number, state in states:
        for epoch in {epoch for epoch, *_ in state.steps}:
            _move(database, number, epoch, histogram_change(state, epoch))
        for cell, count in state.counted.items():
            SqlTally(database, number, cell).add(state.series, count)


def _move(database: SqlConnection, number: int, epoch: int, change: Mapping[int, int]) -> None:
    row = database.execute(_SPENT_ROWS, (number, epoch)).fetchone()
    spent_rows = pad_zeros(decode_numbers(row[0] if row else b""), max(change))
    for spent, by in change.items():
        spent_rows[spent - 1] += by
    database.execute(_MOVE, (number, epoch, encode_numbers(spent_rows)))
