"""The state in one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from .interface import (
    PUT_OFF,
    ROW_CLOSED,
    ConsentDecision,
    Coverage,
    DrawOutcome,
    HeldValue,
    OutboxLimits,
    OverdueReport,
    PersonState,
    QueuedReport,
    ReportDraw,
    Resumption,
    SentReport,
    SpentBudget,
)
from .key_derivation import new_salt, person_root, person_secret
from .losses import Loss
from .sqlite_commit import agrees, commit_draw, delete_held, held_value, put_held, used_slots
from .sqlite_database import SqliteFile, keep, lose, moves
from .sqlite_outbox import aged, finish, lease, over_limits, report_of

_UNCOVER = "update coverage set round = round + is_current, is_current = 0"


class SqliteState(SqliteFile):
    """The state of one directory."""

    # -- persons -------------------------------------------------------------------------------

    def person(self, key: bytes) -> PersonState:
        with self._reading() as database:
            row = database.execute(
                "select salt, consented, declined from person where key = ?", (key,)
            ).fetchone()
            coverage, moved = _coverage(database, key), moves(database)
        if row is None:
            with self._writing() as database:
                _add_person(database, key)
            return self.person(key)
        salt, consented, declined = row
        return PersonState(
            key,
            person_secret(self.root, key, salt),
            person_root(self.root, key),
            None if consented is None else bool(consented),
            coverage,
            frozenset(declined.split()),
            salt,
            max(moved, default=0.0),
        )

    @property
    def moved(self) -> tuple[float, ...]:
        with self._reading() as database:
            return moves(database)

    def consenting(self) -> list[bytes]:
        return [key for (key,) in self._read("select key from person where consented")]

    def consent(self, key: bytes, decision: ConsentDecision) -> None:
        with self._writing() as database:
            consent(database, key, decision)

    def forget(self, key: bytes) -> None:
        with self._writing() as database:
            for table in ("report", "used", "held", "token"):
                database.execute(f"delete from {table} where person = ?", (key,))  # noqa: S608 - four names, written above
            database.execute(f"{_UNCOVER} where person = ?", (key,))
            database.execute("delete from person where key = ?", (key,))

    # -- answers -------------------------------------------------------------------------------

    def used(self, key: bytes, series: str) -> tuple[int, int]:
        with self._reading() as database:
            return used_slots(database, key, bytes.fromhex(series))

    def close_row(self, key: bytes, series: str, through: int) -> None:
        with self._writing() as database:
            database.execute(
                "insert into used select key, ?, ?, ? from person where key = ?"
                " on conflict do update set period = excluded.period, answers = excluded.answers"
                " where period <= excluded.period",
                (bytes.fromhex(series), through, ROW_CLOSED, key),
            )

    def spent(self, key: bytes) -> Mapping[str, SpentBudget]:
        rows = self._read(
            "select lineage, life, first_day, end_day, range_spent from ledger where person = ?",
            key,
        )
        return {lineage: SpentBudget(*figures) for lineage, *figures in rows}

    def commit(self, draws: Sequence[ReportDraw]) -> list[DrawOutcome]:
        with self._writing() as database:
            return [commit_draw(database, draw) for draw in draws]

    # -- held values ---------------------------------------------------------------------------

    def hold(self, old: HeldValue | None, new: HeldValue, round: int = 0) -> bool:  # noqa: A002
        with self._writing() as database:
            unchanged = held_value(database, new.person, new.series) == old
            series = bytes.fromhex(new.series)
            if not (unchanged and agrees(database, new.person, series, round)):
                return False
            put_held(database, new)
        return True

    def held(self, key: bytes, series: str) -> HeldValue | None:
        with self._reading() as database:
            return held_value(database, key, series)

    def held_due(self, now: float, most: int) -> list[HeldValue]:
        rows = self._read("select * from held where due <= ? order by due limit ?", now, most)
        return [HeldValue(person, series.hex(), *fields) for person, series, *fields in rows]

    def next_held(self) -> float | None:
        return self._read_value("select min(due) from held")

    def drop_held(self, value: HeldValue) -> None:
        with self._writing() as database:
            if held_value(database, value.person, value.series) == value:
                delete_held(database, value.person, bytes.fromhex(value.series), value.period)

    # -- the outbox ----------------------------------------------------------------------------

    def lease(
        self, now: float, until: float, most: int, *, hurry: bool = False
    ) -> list[QueuedReport]:
        with self._writing() as database:
            return lease(database, now, until, most, hurry=hurry)

    def overdue(self, before: float, after: float, most: int) -> list[OverdueReport]:
        rows = self._read(
            "select number, expires, length(sealed) from report"
            " where status = 'waiting' and max(send_at, leased) < ?"
            " union all select number, expires, length(sealed) from report"
            " where status = 'waiting' and max(send_at, leased) > ?"
            " and (leased > ? or send_at > earliest + ?) limit ?",
            *(before, after, after, PUT_OFF, most),
        )
        return [OverdueReport(number, expires, sealed > 0) for number, expires, sealed in rows]

    def attempts(self) -> int:
        return self._read_value("select max(tries) from report where status = 'waiting'") or 0

    def next_due(self) -> float | None:
        return self._read_value(
            "select max(send_at, leased) from report where status = 'waiting'"
            " order by max(send_at, leased) limit 1"
        )

    def waiting(self, now: float) -> int:
        query = "select count(*) from report where status = 'waiting' and earliest <= ?"
        return self._read_value(query, now) or 0

    def settle(self, delivered: Iterable[int], dropped: Mapping[int, Loss]) -> None:
        ends = [("delivered", number) for number in delivered]
        ends += [(loss.value, number) for number, loss in dropped.items()]
        with self._writing() as database:
            for status, number in ends:
                finish(database, number, status)

    def reschedule(self, numbers: Mapping[int, float], *, unsent: bool = False) -> None:
        if not numbers:
            return
        with self._writing() as database:
            database.executemany(
                "update report set leased = 0, send_at = ?, tries = max(tries - ?, 0)"
                " where number = ? and status = 'waiting'",
                [(due, unsent, number) for number, due in numbers.items()],
            )

    def retire(self, series: str, resumed: float = 0.0) -> None:
        name = bytes.fromhex(series)
        with self._writing() as database:
            database.execute("delete from held where series = ?", (name,))
            if resumed:
                database.execute(
                    "delete from report where series = ? and status = 'waiting'", (name,)
                )
                database.execute(
                    "update coverage set resumed = max(resumed, ?), round = round + 1"
                    " where series = ?",
                    (resumed, name),
                )

    def expire(self, now: float, limits: OutboxLimits) -> None:
        with self._reading() as database:
            if not (aged(database, now) or over_limits(database, limits)):
                return
        with self._writing() as database:
            for number, loss in aged(database, now):
                finish(database, number, loss)
            for number, loss in over_limits(database, limits):
                finish(database, number, loss)

    def sent(self, key: bytes) -> list[SentReport]:
        with self._reading() as database:
            rows = database.execute(
                "select status, series, period, segment, pseudonym, slot, message from report"
                " where person = ? order by number",
                (key,),
            )
            return [SentReport(report_of(*row), status) for status, *row in rows]

    # -- tokens --------------------------------------------------------------------------------

    def agrees(self, key: bytes, series: str, round: int) -> bool:  # noqa: A002
        with self._reading() as database:
            return agrees(database, key, bytes.fromhex(series), round)

    def keep_tokens(self, person: PersonState, tokens: Mapping[bytes, bytes]) -> None:
        rows = [(pseudonym, token, person.key, person.salt) for pseudonym, token in tokens.items()]
        with self._writing() as database:
            database.executemany(
                "insert or replace into token"
                " select key, ?, ? from person where key = ? and salt = ?",
                rows,
            )

    def token(self, key: bytes, pseudonym: bytes) -> bytes | None:
        query = "select token from token where person = ? and pseudonym = ?"
        return self._read_value(query, key, pseudonym)

    # -- losses and notes ----------------------------------------------------------------------

    def lose(self, losses: Mapping[tuple[Loss, str], int]) -> None:
        with self._writing() as database:
            for (loss, collection), count in losses.items():
                lose(database, loss, collection, count)

    def losses(self) -> Mapping[tuple[Loss, str], int]:
        rows = self._read("select reason, collection, count from loss")
        return {(Loss(reason), collection): count for reason, collection, count in rows}

    def note(self, name: str) -> str | None:
        return self._read_value("select value from note where name = ?", name)

    def keep(self, name: str, value: str) -> None:
        with self._writing() as database:
            keep(database, name, value)


def consent(database: sqlite3.Connection, key: bytes, decision: ConsentDecision) -> None:
    """Store a person's decision, and wipe what it withdraws."""
    _add_person(database, key)
    _decide(database, key, decision)
    if decision.consented is False:
        _withdraw(database, key)
    for series in decision.withdrawn:
        _withdraw_series(database, key, bytes.fromhex(series))
    for series, resumption in decision.covered.items():
        _cover(database, key, bytes.fromhex(series), decision.at, resumption)


def _add_person(database: sqlite3.Connection, key: bytes) -> None:
    database.execute(
        "insert into person values (?, ?, null, '') on conflict do nothing", (key, new_salt())
    )


def _coverage(database: sqlite3.Connection, key: bytes) -> dict[str, Coverage]:
    rows = database.execute(
        "select series, since, resumed, is_current, round from coverage where person = ?", (key,)
    )
    return {
        series.hex(): Coverage(since, resumed, bool(is_current), number)
        for series, since, resumed, is_current, number in rows
    }


def _decide(database: sqlite3.Connection, key: bytes, decision: ConsentDecision) -> None:
    """Store what changes of the decision on everything, and of the refusals by name."""
    (declined,) = database.execute("select declined from person where key = ?", (key,)).fetchone()
    names = (set(declined.split()) | decision.declined) - decision.lifted
    database.execute(
        "update person set consented = coalesce(?, consented), declined = ? where key = ?",
        (decision.consented, " ".join(sorted(names)), key),
    )


def _cover(
    database: sqlite3.Connection, key: bytes, series: bytes, at: float, resumption: Resumption
) -> None:
    """Cover a series. No instant is left behind that lies ahead: a clock was, and is set right."""
    database.execute(
        "insert into coverage values (:key, :series, :at, :resumed, 1, 0)"
        " on conflict do update set since = min(since, :at),"
        " resumed = min(case when is_current then resumed else max(resumed, :again) end, :at),"
        " is_current = 1",
        {
            "key": key,
            "series": series,
            "at": at,
            "resumed": resumption.if_new,
            "again": resumption.if_returning,
        },
    )


def _withdraw(database: sqlite3.Connection, key: bytes) -> None:
    """Cover nothing of a person any more, and wipe what waits."""
    database.execute("delete from report where person = ? and status = 'waiting'", (key,))
    database.execute("delete from held where person = ?", (key,))
    database.execute(f"{_UNCOVER} where person = ?", (key,))


def _withdraw_series(database: sqlite3.Connection, key: bytes, series: bytes) -> None:
    row = (key, series)
    database.execute(
        "delete from report where person = ? and series = ? and status = 'waiting'", row
    )
    database.execute("delete from held where person = ? and series = ?", row)
    database.execute(f"{_UNCOVER} where person = ? and series = ?", row)
