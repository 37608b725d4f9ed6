"""Batches of shufflers in SQL: their entries, and the tokens that they have spent."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from veilcount_analysis.series.series import Series

from ..interface import BatchChange, Cell
from ..series_reports import Bytes, Flags
from .intake import MOST
from .remembered import ensure_series
from .sql_connection import SqlConnection
from .tallies import SqlTally

_ENTRY = "select entry from batch where series = ? and key = ?"
_SPEND = "insert into spent_token values (?, ?, ?)"


def change_batch(database: SqlConnection, series: Series, change: BatchChange) -> bool:
    """Make a change, unless the entry or a token is not as expected."""
    number, _ = ensure_series(database, series.fingerprint)
    row = database.execute(_ENTRY, (number, change.key)).fetchone()
    if (row and row[0]) != change.expected:
        return False
    if spent_tokens(database, number, change.period, change.spent).any():
        return False
    put_entry(database, number, change.key, change.entry)
    spend_tokens(database, number, change.period, (row.tobytes() for row in change.spent))
    if change.counters is not None:
        SqlTally(database, number, Cell(change.period, 0)).grow(
            series, change.reports, change.counters
        )
    return True


def put_entry(database: SqlConnection, number: int, key: str, entry: bytes | None) -> None:
    """Write the entry of a batch, or remove it."""
    if entry is None:
        database.execute("delete from batch where series = ? and key = ?", (number, key))
    else:
        database.execute("replace into batch values (?, ?, ?)", (number, key, entry))


def spend_tokens(database: SqlConnection, number: int, period: int, rows: Iterable[bytes]) -> None:
    """Write tokens that are not spent yet."""
    database.executemany(_SPEND, [(number, period, row) for row in rows])


def spent_tokens(database: SqlConnection, number: int, period: int, rows: Bytes) -> Flags:
    """Return which tokens of a period are spent, some at a time."""
    tokens = [row.tobytes() for row in rows]
    spent: set[bytes] = set()
    for first in range(0, len(tokens), MOST):
        some = tokens[first : first + MOST]
        marks = ", ".join("?" * len(some))
        query = f"select row from spent_token where series = ? and period = ? and row in ({marks})"  # noqa: S608 - question marks
        spent.update(row for (row,) in database.execute(query, (number, period, *some)))
    return np.array([token in spent for token in tokens], np.bool_)
