"""The shelf of small records in SQL, and the fence: both stand beside one generation number."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence

from ...errors import StoreReadOnly
from ..interface import Record, Records


def generation(database: sqlite3.Connection) -> int:
    """Return how often the shelf has changed."""
    return int(database.execute("select generation from state").fetchone()[0])


def records(database: sqlite3.Connection, kind: str) -> Records:
    """Return the records of a kind."""
    return dict(database.execute("select key, value from record where kind = ?", (kind,)))


def record_keys(database: sqlite3.Connection, kind: str) -> frozenset[str]:
    """Return the keys of the records of a kind."""
    return frozenset(
        key for (key,) in database.execute("select key from record where kind = ?", (kind,))
    )


def records_at(database: sqlite3.Connection, kind: str, keys: Collection[str]) -> Records:
    """Return the records of a kind under some keys."""
    found = (
        database.execute("select key, value from record where kind = ? and key = ?", (kind, key))
        for key in keys
    )
    return dict(row for rows in found for row in rows)


def record_count(database: sqlite3.Connection, kind: str) -> int:
    """Return the number of records of a kind."""
    found = database.execute("select count(*) from record where kind = ?", (kind,))
    return int(found.fetchone()[0])


def generations(database: sqlite3.Connection) -> dict[str, int]:
    """Return the generation of the last change of each kind of record."""
    return dict(database.execute("select kind, generation from record_kind"))


def change(database: sqlite3.Connection, expected: int, given: Sequence[Record]) -> bool:
    """Write or remove records, unless the shelf has changed since."""
    if generation(database) != expected:
        return False
    for kind, key, value in given:
        if value is None:
            database.execute("delete from record where kind = ? and key = ?", (kind, key))
        else:
            put(database, kind, key, value)
    changed(database, {each.kind for each in given})
    return True


def put(database: sqlite3.Connection, kind: str, key: str, value: bytes) -> None:
    """Write one record."""
    database.execute("replace into record values (?, ?, ?)", (kind, key, value))


def changed(database: sqlite3.Connection, kinds: Iterable[str]) -> None:
    """Advance the generation, and note it for the kinds of records that were changed."""
    database.execute("update state set generation = generation + 1")
    database.executemany(
        "replace into record_kind select ?, generation from state", [(kind,) for kind in kinds]
    )


def fence(database: sqlite3.Connection, *, on: bool) -> None:
    """Close the store for what would change it, or open it."""
    database.execute("update state set fenced = ?", (on,))


def fenced(database: sqlite3.Connection) -> bool:
    """Whether it is closed."""
    return bool(database.execute("select fenced from state").fetchone()[0])


def touch(database: sqlite3.Connection) -> None:
    """Write a page, and change nothing: a fenced store can be probed too."""
    database.execute("insert into record values ('probe', '', x'')")
    database.execute("delete from record where kind = 'probe'")


def refuse_if_fenced(database: sqlite3.Connection) -> None:
    """Send away whoever would change a closed store."""
    if fenced(database):
        raise StoreReadOnly("the store is fenced: it was copied, or is being copied, to another")
