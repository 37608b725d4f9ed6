"""Small records in SQL: read and changed by the store, imported by a transfer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from ..interface import Record, Records
from .sql_connection import SqlConnection


class SqlRecords(ABC):
    """The records of one database."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[SqlConnection]:
        """Read one state of the store."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[SqlConnection]:
        """Do all of it, durably, or nothing; also where the store is read-only."""

    @abstractmethod
    def changing(self) -> AbstractContextManager[SqlConnection]:
        """Change the store in one transaction, unless it is read-only."""

    def generation(self) -> int:
        with self.reading() as database:
            return _generation(database)

    def generations(self) -> Mapping[str, int]:
        with self.reading() as database:
            return dict(database.execute("select kind, generation from record_kind"))

    def records(self, kind: str) -> Records:
        with self.reading() as database:
            return dict(database.execute("select key, value from record where kind = ?", (kind,)))

    def record_keys(self, kind: str) -> frozenset[str]:
        with self.reading() as database:
            rows = database.execute("select key from record where kind = ?", (kind,))
            return frozenset(key for (key,) in rows)

    def record_count(self, kind: str) -> int:
        with self.reading() as database:
            counted = database.execute("select count(*) from record where kind = ?", (kind,))
            return int(counted.fetchone()[0])

    def records_at(self, kind: str, keys: Collection[str]) -> Records:
        query = "select key, value from record where kind = ? and key = ?"
        with self.reading() as database:
            return dict(row for key in keys for row in database.execute(query, (kind, key)))

    def change_records(self, generation: int, records: Sequence[Record]) -> bool:
        with self.changing() as database:
            if _generation(database) != generation:
                return False
            for record in records:
                write_record(database, record)
            advance_generation(database, {record.kind for record in records})
        return True

    def change_record(self, record: Record, expected: bytes | None) -> bool:
        kind, key, _ = record
        query = "select value from record where kind = ? and key = ?"
        with self.changing() as database:
            row = database.execute(query, (kind, key)).fetchone()
            if (row and row[0]) != expected:
                return False
            write_record(database, record)
        return True

    def replica(self, kind: str) -> tuple[int, Records]:
        return self.generation(), self.records(kind)


def write_record(database: SqlConnection, record: Record) -> None:
    """Write one record, or remove it."""
    kind, key, value = record
    if value is None:
        database.execute("delete from record where kind = ? and key = ?", (kind, key))
    else:
        put_record(database, kind, key, value)


def put_record(database: SqlConnection, kind: str, key: str, value: bytes) -> None:
    """Write one record."""
    database.execute("replace into record values (?, ?, ?)", (kind, key, value))


def advance_generation(database: SqlConnection, kinds: Iterable[str]) -> None:
    """Advance the generation, and store it as that of the kinds that were changed."""
    database.execute("update state set generation = generation + 1")
    database.executemany(
        "replace into record_kind select ?, generation from state", [(kind,) for kind in kinds]
    )


def set_read_only(database: SqlConnection, *, on: bool) -> None:
    """Close the store for changes, or open it."""
    database.execute("update state set read_only = ?", (on,))


def is_read_only(database: SqlConnection) -> bool:
    """Whether the store is closed for changes."""
    return bool(database.execute("select read_only from state").fetchone()[0])


def probe_write(database: SqlConnection) -> None:
    """Write a page and change nothing: a read-only store can be probed too."""
    database.execute("insert into record values ('probe', '', x'')")
    database.execute("delete from record where kind = 'probe'")


def _generation(database: SqlConnection) -> int:
    return int(database.execute("select generation from state").fetchone()[0])
