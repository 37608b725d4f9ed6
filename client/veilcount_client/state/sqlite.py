"""The state in one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from veilcount_shared.report import Report

from .interface import (
    KEPT,
    PUT_OFF,
    ROW_CLOSED,
    DrawOutcome,
    HeldValue,
    OutboxLimits,
    PersonState,
    QueuedReport,
    ReportDraw,
    RowClose,
    SentReport,
    SpentBudget,
)
from .key_derivation import new_salt, person_root, person_secret
from .losses import Loss
from .sqlite_database import SqliteFile, keep, lose

_DUE = (
    "select number, person, series, period, segment, pseudonym, slot, message, send_at, tries"
    " from report where status = 'waiting' and {} <= ? and leased <= ?"
    " order by send_at, number limit ?"
)


class SqliteState(SqliteFile):
    """The state of one directory."""

    # -- persons -------------------------------------------------------------------------------

    def person(self, key: bytes) -> PersonState:
        """Return a person, made with a fresh secret if new."""
        row = self._read("select salt, consented, covered, since from person where key = ?", key)
        if not row:
            with self._writing() as database:
                _add_person(database, key)
            return self.person(key)
        salt, consented, covered, since = row[0]
        return PersonState(
            key,
            person_secret(self.root, key, salt),
            person_root(self.root, key),
            None if consented is None else bool(consented),
            frozenset(covered.split()),
            since,
        )

    def consenting(self) -> list[bytes]:
        """Return the keys of all persons who have consented."""
        return [key for (key,) in self._read("select key from person where consented")]

    def consent(self, key: bytes, given: bool, covered: frozenset[str], now: float) -> None:  # noqa: FBT001
        """Keep a person's answer; a withdrawal wipes the outbox and keeps the ledger."""
        with self._writing() as database:
            _add_person(database, key)
            database.execute(
                "update person set consented = ?, covered = ?,"
                " since = case when ? and since = 0 then ? else since end where key = ?",
                (given, " ".join(sorted(covered)), given, now, key),
            )
            if not given:
                database.execute(
                    "delete from report where person = ? and status = 'waiting'", (key,)
                )
                database.execute("delete from held where person = ?", (key,))

    def forget(self, key: bytes) -> None:
        """Wipe secret, answers and outbox, keep what was spent; note the rows to be closed."""
        with self._writing() as database:
            database.execute(
                "insert into row_close select distinct series, pseudonym, 0.0 from report"
                " where person = ? and tries > 0 on conflict do nothing",
                (key,),
            )
            for table in ("report", "used", "held"):
                database.execute(f"delete from {table} where person = ?", (key,))  # noqa: S608 - three names, written above
            database.execute("delete from person where key = ?", (key,))

    # -- answers -------------------------------------------------------------------------------

    def used(self, key: bytes, series: str) -> tuple[int, int]:
        """Return the last answered period of a series, -1 for none, and its number of answers."""
        with self._reading() as database:
            return _used(database, key, bytes.fromhex(series))

    def close_row(self, key: bytes, series: str, through: int) -> None:
        """Keep that the aggregator closed a person's row, through its epoch's last period."""
        with self._writing() as database:
            database.execute(
                "insert into used values (?1, ?2, ?3, ?4) on conflict do update"
                " set period = ?3, answers = ?4 where period <= ?3",
                (key, bytes.fromhex(series), through, ROW_CLOSED),
            )

    def spent(self, key: bytes) -> Mapping[str, SpentBudget]:
        """Return what a person has revealed, by lineage."""
        rows = self._read(
            "select lineage, life, first_day, end_day, range_spent from ledger where person = ?",
            key,
        )
        return {lineage: SpentBudget(*figures) for lineage, *figures in rows}

    def commit(self, draws: Sequence[ReportDraw]) -> list[DrawOutcome]:
        """Charge, freeze and store each draw whose slot is free and whose cost fits; in order."""
        with self._writing() as database:
            return [_commit(database, draw) for draw in draws]

    # -- values that are held ------------------------------------------------------------------

    def hold(self, old: HeldValue | None, new: HeldValue) -> bool:
        """Replace a held value, unless another process has done so since `old` was read."""
        with self._writing() as database:
            unchanged = _held(database, new.person, new.series) == old
            if not (unchanged and _consented(database, new.person)):
                return False
            database.execute(
                "insert or replace into held values (?, ?, ?, ?, ?, ?, ?)",
                (new.person, bytes.fromhex(new.series), *_held_fields(new)),
            )
        return True

    def held(self, key: bytes, series: str) -> HeldValue | None:
        """Return the value that is held of a series."""
        with self._reading() as database:
            return _held(database, key, series)

    def held_due(self, now: float, most: int) -> list[HeldValue]:
        """Return held values whose instant has come."""
        rows = self._read("select * from held where due <= ? order by due limit ?", now, most)
        return [HeldValue(person, series.hex(), *fields) for person, series, *fields in rows]

    def next_held(self) -> float | None:
        """Return when the next held value is due."""
        due: float | None = self._read("select min(due) from held")[0][0]
        return due

    def drop_held(self, value: HeldValue) -> None:
        """Wipe a held value, unless it was replaced."""
        with self._writing() as database:
            if _held(database, value.person, value.series) == value:
                _drop_held(database, value.person, bytes.fromhex(value.series), value.period)

    # -- the outbox ----------------------------------------------------------------------------

    def lease(
        self, now: float, until: float, most: int, *, hurry: bool = False
    ) -> list[QueuedReport]:
        """Take reports that are due (hurry: that may leave), for oneself until the lease ends."""
        with self._writing() as database:
            rows = database.execute(
                _DUE.format("earliest" if hurry else "send_at"), (now, now, most)
            )
            taken = [_parcel(row) for row in rows.fetchall()]
            database.executemany(
                "update report set leased = ?, tries = tries + 1 where number = ?",
                [(until, queued_report.number) for queued_report in taken],
            )
        return taken

    def overdue(self, before: float, beyond: float, most: int) -> list[int]:
        """Return reports that were due before, or that an attempt has put off beyond an instant."""
        rows = self._read(
            "select number from report where status = 'waiting' and max(send_at, leased) < ?1"
            " union all select number from report"
            " where status = 'waiting' and max(send_at, leased) > ?2"
            " and (leased > ?2 or send_at > earliest + ?3) limit ?4",
            before,
            beyond,
            PUT_OFF,
            most,
        )
        return [number for (number,) in rows]

    def attempts(self) -> int:
        """Return how often the waiting report with the most attempts was leased."""
        rows = self._read("select coalesce(max(tries), 0) from report where status = 'waiting'")
        return int(rows[0][0])

    def next_due(self) -> float | None:
        """Return when the next report is due."""
        rows = self._read(
            "select max(send_at, leased) from report where status = 'waiting'"
            " order by max(send_at, leased) limit 1"
        )
        return rows[0][0] if rows else None

    def waiting(self, now: float) -> int:
        """Return how many stored reports may leave now."""
        rows = self._read(
            "select count(*) from report where status = 'waiting' and earliest <= ?", now
        )
        return int(rows[0][0])

    def settle(self, delivered: Iterable[int], dropped: Mapping[int, Loss]) -> None:
        """Take reports off the outbox: delivered ones stay in the receipt, dropped ones count."""
        ends = [("delivered", number) for number in delivered]
        ends += [(loss.value, number) for number, loss in dropped.items()]
        with self._writing() as database:
            for status, number in ends:
                _finish(database, number, status)

    def reschedule(self, numbers: Mapping[int, float], *, unsent: bool = False) -> None:
        """Put reports back, each due at its time. Unsent: the lease was no attempt after all."""
        if not numbers:
            return
        with self._writing() as database:
            database.executemany(
                "update report set leased = 0, send_at = ?, tries = max(tries - ?, 0)"
                " where number = ? and status = 'waiting'",
                [(due, unsent, number) for number, due in numbers.items()],
            )

    def retire(self, series: str, *, reports: bool) -> None:
        """Wipe what is held of a series that is no longer collected, and its waiting reports."""
        name = (bytes.fromhex(series),)
        with self._writing() as database:
            database.execute("delete from held where series = ?", name)
            if reports:
                database.execute("delete from report where series = ? and status = 'waiting'", name)

    def expire(self, now: float, bounds: OutboxLimits) -> None:
        """Drop what is too old, then the oldest beyond the bounds; count both."""
        with self._reading() as database:
            if not (_aged(database, now) or _over_limits(database, bounds)):
                return
        with self._writing() as database:
            for number in _aged(database, now):
                _finish(database, number, Loss.AGED.value)
            for number in _over_limits(database, bounds):
                _finish(database, number, Loss.EVICTED.value)

    def sent(self, key: bytes) -> list[SentReport]:
        """Return a person's reports: on their way, delivered or dropped."""
        with self._reading() as database:
            rows = database.execute(
                "select status, series, period, segment, pseudonym, slot, message from report"
                " where person = ? order by number",
                (key,),
            )
            return [SentReport(_report(*row), status) for status, *row in rows]

    # -- rows to be closed ---------------------------------------------------------------------

    def row_closes(self, now: float, most: int) -> list[RowClose]:
        """Return the requests to close a row that are due."""
        rows = self._read("select * from row_close where due <= ? order by due limit ?", now, most)
        return [RowClose(series.hex(), pseudonym, due) for series, pseudonym, due in rows]

    def schedule_row_closes(self, times: Mapping[tuple[str, bytes], float]) -> None:
        """Set when requests to close a row, by series and pseudonym, are due."""
        with self._writing() as database:
            database.executemany(
                "update row_close set due = ? where series = ? and pseudonym = ?",
                [(due, bytes.fromhex(series), row) for (series, row), due in times.items()],
            )

    def finish_row_close(self, series: str, pseudonym: bytes) -> None:
        """Take a request to close a row off: the aggregator has done it."""
        with self._writing() as database:
            database.execute(
                "delete from row_close where series = ? and pseudonym = ?",
                (bytes.fromhex(series), pseudonym),
            )

    def next_row_close(self) -> float | None:
        """Return when the next request to close a row is due."""
        due: float | None = self._read("select min(due) from row_close")[0][0]
        return due

    # -- losses and notes ----------------------------------------------------------------------

    def lose(self, losses: Mapping[tuple[Loss, str], int]) -> None:
        """Add to the count of losses, by reason and collection."""
        with self._writing() as database:
            for (loss, collection), count in losses.items():
                lose(database, loss, collection, count)

    def losses(self) -> Mapping[tuple[Loss, str], int]:
        """Return the counts of losses."""
        rows = self._read("select reason, collection, count from loss")
        return {(Loss(reason), collection): count for reason, collection, count in rows}

    def note(self, name: str) -> str | None:
        """Return a small thing that was kept under a name."""
        rows = self._read("select value from note where name = ?", name)
        return rows[0][0] if rows else None

    def keep(self, name: str, value: str) -> None:
        """Keep a small thing under a name."""
        with self._writing() as database:
            keep(database, name, value)


def _add_person(database: sqlite3.Connection, key: bytes) -> None:
    database.execute(
        "insert into person values (?, ?, null, '', 0) on conflict do nothing", (key, new_salt())
    )


def _used(database: sqlite3.Connection, key: bytes, series: bytes) -> tuple[int, int]:
    row = database.execute(
        "select period, answers from used where person = ? and series = ?", (key, series)
    ).fetchone()
    return (row[0], row[1]) if row else (-1, 0)


def _commit(database: sqlite3.Connection, draw: ReportDraw) -> DrawOutcome:
    if not _consented(database, draw.person):
        return DrawOutcome.NO_CONSENT
    if not draw.free and (fate := _spend(database, draw)) is not DrawOutcome.STORED:
        return fate
    if draw.report is not None:
        _store(database, draw, draw.report)
    return DrawOutcome.STORED


def _consented(database: sqlite3.Connection, key: bytes) -> bool:
    row = database.execute("select consented from person where key = ?", (key,)).fetchone()
    return bool(row and row[0])


def _spend(database: sqlite3.Connection, draw: ReportDraw) -> DrawOutcome:
    series = bytes.fromhex(draw.series)
    period, answers = _used(database, draw.person, series)
    # Periods only move forward: a clock set back finds its slots spent.
    free = draw.answer == 0 if draw.period > period else draw.answer == answers
    if draw.period < period or not free:
        return DrawOutcome.FROZEN
    if not _charge(database, draw):
        return DrawOutcome.OVER_CAP
    database.execute(
        "insert into used values (?, ?, ?, ?) on conflict do update"
        " set period = excluded.period, answers = excluded.answers",
        (draw.person, series, draw.period, draw.answer + 1),
    )
    _drop_held(database, draw.person, series, draw.period)
    return DrawOutcome.STORED


def _charge(database: sqlite3.Connection, draw: ReportDraw) -> bool:
    """Charge a draw to its lineage, or refuse what its caps, or another unit, leave no room for."""
    if not draw.cost:
        return True  # of an answer that is given up: nothing is revealed
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


def _store(database: sqlite3.Connection, draw: ReportDraw, report: Report) -> None:
    database.execute(
        "insert into report (person, series, period, segment, pseudonym, slot, message, earliest,"
        " send_at, expires, is_true) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            draw.person,
            bytes.fromhex(report.fingerprint),
            report.period,
            report.segment,
            report.pseudonym,
            report.slot,
            report.message,
            draw.earliest,
            draw.send_at,
            draw.expires,
            draw.is_true,
        ),
    )


def _held(database: sqlite3.Connection, key: bytes, series: str) -> HeldValue | None:
    row = database.execute(
        "select period, segment, value, at, due from held where person = ? and series = ?",
        (key, bytes.fromhex(series)),
    ).fetchone()
    return HeldValue(key, series, *row) if row else None


def _held_fields(value: HeldValue) -> tuple[Any, ...]:
    return (value.period, value.segment, value.value, value.at, value.due)


def _drop_held(database: sqlite3.Connection, key: bytes, series: bytes, period: int) -> None:
    database.execute(
        "delete from held where person = ? and series = ? and period <= ?", (key, series, period)
    )


def _parcel(row: tuple[Any, ...]) -> QueuedReport:
    number, person, *fields, send_at, tries = row
    return QueuedReport(number, person, _report(*fields), send_at, tries + 1)


def _report(series: bytes, *fields: Any) -> Report:
    return Report(series.hex(), *fields)


def _finish(database: sqlite3.Connection, number: int, status: str) -> None:
    """End a report's way once, count it if it was lost, and keep the person's last few."""
    row = database.execute(
        "update report set status = ?, leased = 0,"
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
        "delete from report where person = ?1 and status != 'waiting' and number <= ("
        " select number from report where person = ?1 and status != 'waiting'"
        " order by number desc limit 1 offset ?2)",
        (person, KEPT),
    )


def _aged(database: sqlite3.Connection, now: float) -> list[int]:
    rows = database.execute(
        "select number from report where status = 'waiting' and expires <= ?", (now,)
    )
    return [number for (number,) in rows]


def _over_limits(database: sqlite3.Connection, bounds: OutboxLimits) -> list[int]:
    """Return the oldest waiting reports that do not fit in count or in bytes."""
    count, size = database.execute(
        "select count(*), coalesce(sum(length(message)), 0) from report where status = 'waiting'"
    ).fetchone()
    if count <= bounds.reports and size <= bounds.message_bytes:
        return []
    rows = database.execute(
        "select number, length(message) from report where status = 'waiting' order by number desc"
    )
    kept = held = 0
    over = []
    for number, length in rows:
        kept, held = kept + 1, held + length
        if kept > bounds.reports or held > bounds.message_bytes:
            over.append(number)
    return over
