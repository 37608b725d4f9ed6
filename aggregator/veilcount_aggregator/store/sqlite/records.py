"""Small records in SQL: read and changed by the store, imported by a transfer."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ...errors import StoreReadOnly
from ..interface import Record, Records
from .database import SqliteDatabase
from .height import SqliteHeight, read_height


class SqliteRecords:
    """The records of one file."""

    def __init__(self, file: SqliteDatabase) -> None:
        self.file = file
        self.height = SqliteHeight(file.place.path)

    def generation(self) -> int:
        with self.file.reading() as database:
            return _generation(database)

    def generations(self) -> Mapping[str, int]:
        with self.file.reading() as database:
            return dict(database.execute("select kind, generation from record_kind"))

    def records(self, kind: str) -> Records:
        with self.file.reading() as database:
            return dict(database.execute("select key, value from record where kind = ?", (kind,)))

    def record_keys(self, kind: str) -> frozenset[str]:
        with self.file.reading() as database:
            found = database.execute("select key from record where kind = ?", (kind,))
            return frozenset(key for (key,) in found)

    def records_at(self, kind: str, keys: Collection[str]) -> Records:
        query = "select key, value from record where kind = ? and key = ?"
        with self.file.reading() as database:
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
            found = database.execute(query, (kind, key)).fetchone()
            if (found and found[0]) != expected:
                return False
            write_record(database, record)
        return True

    def replicate(self, kinds: Sequence[str]) -> None:
        """Do nothing: there is one file."""

    def replica(self, kind: str) -> tuple[int, Records]:
        return self.generation(), self.records(kind)

    def incarnation(self) -> str:
        """Return the store's id, and when an older file was last accepted as the store.

        Nothing is written to an older file before that: its height is too low.
        """
        with self.file.reading() as database:
            height = read_height(database)
        return f"{height.store}-{height.accepted}"

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """Return a transaction that changes the store, unless it is read-only or went back."""
        with self.file.writing() as database:
            if is_read_only(database):
                raise StoreReadOnly(
                    "the store is read-only: it was copied, or is being copied, to another"
                )
            with self.height.raising(database):
                yield database
            height = read_height(database)
        self.height.keep(height)


def write_record(database: sqlite3.Connection, record: Record) -> None:
    """Write one record, or remove it."""
    kind, key, value = record
    if value is None:
        database.execute("delete from record where kind = ? and key = ?", (kind, key))
    else:
        put_record(database, kind, key, value)


def put_record(database: sqlite3.Connection, kind: str, key: str, value: bytes) -> None:
    """Write one record."""
    database.execute("replace into record values (?, ?, ?)", (kind, key, value))


def advance_generation(database: sqlite3.Connection, kinds: Iterable[str]) -> None:
    """Advance the generation, and store it as that of the kinds that were changed."""
    database.execute("update state set generation = generation + 1")
    database.executemany(
        "replace into record_kind select ?, generation from state", [(kind,) for kind in kinds]
    )


def set_read_only(database: sqlite3.Connection, *, on: bool) -> None:
    """Close the store for changes, or open it."""
    database.execute("update state set read_only = ?", (on,))


def is_read_only(database: sqlite3.Connection) -> bool:
    """Whether the store is closed for changes."""
    return bool(database.execute("select read_only from state").fetchone()[0])


def probe_write(database: sqlite3.Connection) -> None:
    """Write a page and change nothing: a read-only store can be probed too."""
    database.execute("insert into record values ('probe', '', x'')")
    database.execute("delete from record where kind = 'probe'")


def _generation(database: sqlite3.Connection) -> int:
    return int(database.execute("select generation from state").fetchone()[0])
