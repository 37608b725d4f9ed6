"""Retention in SQL: epochs are marked as dropped, restored while their rows last, and deleted."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from ...series.series import Series
from .intake import ensure_series

#: so many rows are deleted in one transaction: a few milliseconds, for which a commit may wait
ROWS_AT_ONCE = 2_000


def mark(database: sqlite3.Connection, series: Series, epochs: int, now: datetime) -> int:
    """Mark the first epochs as dropped, from now on; return how many were not before."""
    number, dropped = ensure_series(database, series.fingerprint)
    if epochs <= dropped:
        return 0
    database.execute("update series set dropped = ? where number = ?", (epochs, number))
    database.execute(
        "insert into drop_mark values (?, ?, ?)", (number, epochs, int(now.timestamp()))
    )
    return epochs - dropped


def restore(database: sqlite3.Connection, number: int) -> int:
    """Take the marks of a series back as far as its rows are whole; return how many epochs."""
    dropped, deleted = database.execute(
        "select dropped, deleted from series where number = ?", (number,)
    ).fetchone()
    database.execute("update series set dropped = deleted where number = ?", (number,))
    database.execute("delete from drop_mark where series = ?", (number,))
    return int(dropped - deleted)


def make_final(database: sqlite3.Connection, number: int, before: datetime) -> None:
    """Make drops at an instant or before final: nothing of them can be restored."""
    arguments = (number, int(before.timestamp()))
    database.execute(
        "update series set deleted = max(deleted, coalesce((select max(epochs) from drop_mark"
        " where series = ?1 and at <= ?2), 0)) where number = ?1",
        arguments,
    )
    database.execute("delete from drop_mark where series = ? and at <= ?", arguments)


def is_due(database: sqlite3.Connection, number: int, before: datetime) -> bool:
    """Whether anything was dropped at an instant or before, so that it is final now."""
    found = database.execute(
        "select 1 from drop_mark where series = ? and at <= ?", (number, int(before.timestamp()))
    )
    return found.fetchone() is not None


def deleted_epochs(database: sqlite3.Connection, number: int) -> int:
    """Return the first epoch of a series whose rows are whole."""
    found = database.execute("select deleted from series where number = ?", (number,)).fetchone()
    return int(found[0]) if found else 0


def series_with_deletable_rows(database: sqlite3.Connection) -> list[int]:
    """Return the series that have rows left of epochs whose drop is final."""
    left = database.execute(
        "select number from series where deleted > 0 and exists"
        " (select 1 from ledger where series = number and epoch < deleted)"
    )
    return [number for (number,) in left]


def delete_rows(database: sqlite3.Connection, number: int) -> bool:
    """Delete some rows of epochs whose drop is final; return whether there may be more."""
    deleted = database.execute(
        "delete from ledger where (series, epoch, row) in ("
        " select l.series, l.epoch, l.row from series s"
        " join ledger l on l.series = s.number and l.epoch < s.deleted"
        " where s.number = ? limit ?)",
        (number, ROWS_AT_ONCE),
    ).rowcount
    return deleted == ROWS_AT_ONCE
