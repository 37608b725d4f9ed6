"""The commit of a draw in SQLite: charge, slot and report, in the transaction of the caller."""

from __future__ import annotations

import sqlite3
from dataclasses import astuple

from .interface import DrawOutcome, HeldValue, ReportDraw


def commit_draw(database: sqlite3.Connection, draw: ReportDraw) -> DrawOutcome:
    """Charge, freeze and store a draw if its person consents, its slot is free and its cost fits.

    A free draw, of development, is only stored.
    """
    if not agrees(database, draw.person, bytes.fromhex(draw.series), draw.round):
        return DrawOutcome.NO_CONSENT
    if not draw.free and (outcome := spend(database, draw)) is not DrawOutcome.STORED:
        return outcome
    if (report := draw.report) is not None:
        database.execute(
            "insert into report (person, series, period, segment, pseudonym, slot, message, sealed,"
            " earliest, send_at, expires, is_true) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (draw.person, bytes.fromhex(report.fingerprint), report.period, report.segment,
             report.pseudonym, report.slot, report.message, draw.sealed,
             draw.earliest, draw.send_at, draw.expires, draw.is_true),
        )  # fmt: skip
    return DrawOutcome.STORED


def spend(database: sqlite3.Connection, draw: ReportDraw) -> DrawOutcome:
    """Charge a draw and use up its slot. Periods only move forward, whatever the clock does."""
    series = bytes.fromhex(draw.series)
    period, answers = used_slots(database, draw.person, series)
    is_free = draw.answer == 0 if draw.period > period else draw.answer == answers
    if draw.period < period or not is_free or not _is_held(database, draw):
        return DrawOutcome.FROZEN
    if not charge(database, draw):
        return DrawOutcome.OVER_CAP
    database.execute(
        "insert into used values (?, ?, ?, ?) on conflict do update"
        " set period = excluded.period, answers = excluded.answers",
        (draw.person, series, draw.period, draw.answer + 1),
    )
    delete_held(database, draw.person, series, draw.period)
    if draw.held and draw.held.new:
        put_held(database, draw.held.new)
    return DrawOutcome.STORED


def _is_held(database: sqlite3.Connection, draw: ReportDraw) -> bool:
    """Whether the value that a draw was made from is still held."""
    pending = draw.held
    return pending is None or held_value(database, draw.person, draw.series) == pending.old


def charge(database: sqlite3.Connection, draw: ReportDraw) -> bool:
    """Charge a draw to its lineage, unless its caps or the days of another unit forbid it."""
    if not draw.cost:
        return True  # of a forgone answer: nothing is revealed
    row = database.execute(
        "select life, first_day, end_day, range_spent from ledger where person = ? and lineage = ?",
        (draw.person, draw.lineage),
    ).fetchone()
    paid = (draw.first_day, draw.end_day)
    life, *last, spent = row or (0, *paid, 0)
    if draw.first_day >= last[1]:
        spent = 0
    elif paid != tuple(last):
        return False  # a part of these days was paid for as another unit's
    life, spent = life + draw.cost, spent + draw.cost
    if life > draw.life_cap or spent > draw.day_cap:
        return False
    database.execute(
        "insert or replace into ledger values (?, ?, ?, ?, ?, ?)",
        (draw.person, draw.lineage, life, *paid, spent),
    )
    return True


def agrees(database: sqlite3.Connection, key: bytes, series: bytes, number: int) -> bool:
    """Whether a person's consent covers a series, in this round of its coverage."""
    row = database.execute(
        "select 1 from person join coverage on person = key and series = ?"
        " where key = ? and consented and is_current and round = ?",
        (series, key, number),
    ).fetchone()
    return row is not None


def used_slots(database: sqlite3.Connection, key: bytes, series: bytes) -> tuple[int, int]:
    """Return the last answered period of a series, -1 for none, and its number of answers."""
    row = database.execute(
        "select period, answers from used where person = ? and series = ?", (key, series)
    ).fetchone()
    return (row[0], row[1]) if row else (-1, 0)


def held_value(database: sqlite3.Connection, key: bytes, series: str) -> HeldValue | None:
    """Return the value that is held of a series."""
    row = database.execute(
        "select period, segment, value, at, due from held where person = ? and series = ?",
        (key, bytes.fromhex(series)),
    ).fetchone()
    return HeldValue(key, series, *row) if row else None


def put_held(database: sqlite3.Connection, value: HeldValue) -> None:
    """Hold a value in place of what is held of its series."""
    person, series, *fields = astuple(value)
    database.execute(
        "insert or replace into held values (?, ?, ?, ?, ?, ?, ?)",
        (person, bytes.fromhex(series), *fields),
    )


def delete_held(database: sqlite3.Connection, key: bytes, series: bytes, period: int) -> None:
    """Wipe the value that is held of a series, unless it is of a later period."""
    database.execute(
        "delete from held where person = ? and series = ? and period <= ?", (key, series, period)
    )
