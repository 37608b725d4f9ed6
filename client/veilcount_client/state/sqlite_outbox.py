"""The outbox in SQLite: what is leased, how a report's way ends, what is dropped."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from veilcount_shared.report import Report

from .interface import KEPT, OutboxLimits, QueuedReport
from .losses import Loss
from .sqlite_database import lose

_DUE = (
    "select number, person, send_at, tries + 1, sealed,"
    " series, period, segment, pseudonym, slot, message"
    " from report where status = 'waiting' and {} <= ? and leased <= ?"
    " order by send_at, number limit ?"
)


def lease(
    database: sqlite3.Connection, now: float, until: float, most: int, *, hurry: bool
) -> list[QueuedReport]:
    """Take reports that are due, or that may leave, until the lease ends."""
    due = _DUE.format("earliest" if hurry else "send_at")
    leased = [
        QueuedReport(number, person, report_of(*fields), send_at, tries, sealed)
        for number, person, send_at, tries, sealed, *fields in database.execute(
            due, (now, now, most)
        ).fetchall()
    ]
    database.executemany(
        "update report set leased = ?, tries = tries + 1 where number = ?",
        [(until, queued_report.number) for queued_report in leased],
    )
    return leased


def report_of(series: bytes, *fields: Any) -> Report:
    """Return the report of a row."""
    return Report(series.hex(), *fields)


def finish(database: sqlite3.Connection, number: int, status: str) -> None:
    """End a report's way once, count it if it was lost, and keep the person's last few."""
    row = database.execute(
        "update report set status = ?, leased = 0, sealed = zeroblob(0),"
        " message = case when is_true then zeroblob(1) else message end"
        " where number = ? and status = 'waiting' returning person, series",
        (status, number),
    ).fetchone()
    if row is None:
        return
    person, series = row
    if status != "delivered":
        lose(database, Loss(status), series.hex(), 1)
    database.execute(
        "delete from report where person = :person and status != 'waiting' and number <= ("
        " select number from report where person = :person and status != 'waiting'"
        " order by number desc limit 1 offset :kept)",
        {"person": person, "kept": KEPT},
    )


def aged(database: sqlite3.Connection, now: float) -> list[tuple[int, Loss]]:
    """Return what is too old, and what becomes of it."""
    rows = database.execute(
        "select number, length(sealed) and tries from report"
        " where status = 'waiting' and expires <= ?",
        (now,),
    )
    return _lost(rows, Loss.AGED)


def _lost(rows: Iterable[tuple[int, int]], loss: Loss) -> list[tuple[int, Loss]]:
    """Return what becomes of reports: of a sealed one that was tried nobody knows."""
    return [(number, Loss.UNANSWERED if tried else loss) for number, tried in rows]


def over_limits(database: sqlite3.Connection, limits: OutboxLimits) -> list[tuple[int, Loss]]:
    """Return the waiting reports that do not fit in count or in bytes: those that are due first."""
    count, size = database.execute(
        "select count(*), coalesce(sum(length(message) + length(sealed)), 0)"
        " from report where status = 'waiting'"
    ).fetchone()
    if count <= limits.reports and size <= limits.message_bytes:
        return []
    rows = database.execute(
        "select number, tried from ("
        " select number, length(sealed) and tries as tried, row_number() over last as count,"
        " sum(length(message) + length(sealed)) over last as size"
        " from report where status = 'waiting'"
        " window last as (order by max(send_at, leased) desc, number desc)"
        ") where count > ? or size > ?",
        (limits.reports, limits.message_bytes),
    )
    return _lost(rows, Loss.EVICTED)
