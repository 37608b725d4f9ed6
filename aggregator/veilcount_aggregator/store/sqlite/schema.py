"""The tables of a store, and their migrations."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ...errors import StoreUnfit

#: "veil": what tells a store from another program's database
APPLICATION = 0x7665696C

_FIRST = """
create table state (generation integer not null, read_only integer not null) strict;
insert into state values (0, 0);

create table record (
    kind text, key text, value blob not null, primary key (kind, key)
) strict, without rowid;

create table series (
    number integer primary key, fingerprint text not null unique, dropped integer not null default 0
) strict;

-- one bit a slot, slot 0 in the lowest of the first byte
create table ledger (
    series integer, epoch integer, row blob, spent blob not null,
    primary key (series, epoch, row)
) strict, without rowid;

create table new_rows (
    series integer, period integer, rows integer not null, primary key (series, period)
) strict, without rowid;

-- how many rows have spent 1, 2, .. slots
create table spent_rows (
    series integer, epoch integer, rows blob not null, primary key (series, epoch)
) strict;

-- n, and the counters of a small tally; those of a large one are the sum of its parts
create table tally (
    series integer, period integer, segment integer, n integer not null, counters blob not null,
    waiting integer not null default 0, primary key (series, period, segment)
) strict;

create table part (
    number integer primary key, series integer not null, period integer not null,
    segment integer not null, level integer not null, dense integer not null, body blob not null
) strict;
create index part_of on part (series, period, segment, level);

create table service_counter (
    what text, fingerprint text, period integer, word text, times integer not null,
    primary key (what, fingerprint, period, word)
) strict, without rowid
"""

#: adds to a service counter
COUNT = (
    "insert into service_counter (what, fingerprint, period, word, times) values (?, ?, ?, ?, ?)"
    " on conflict do update set times = times + excluded.times"
)

# new rows by hour, series and source, for quotas; deleted when the hour is over
_HOURLY = """
create table hourly (
    hour integer, series integer, source text, rows integer not null,
    primary key (hour, series, source)
) strict, without rowid
"""

#: rows of the epochs below `deleted` are deleted, now or soon; the epochs from there to `dropped`
#: were dropped at the moments that `drop_mark` keeps, and their rows are whole
_RECOVERABLE = """
alter table series add column deleted integer not null default 0;
update series set deleted = dropped;

create table drop_mark (
    series integer, epochs integer, at integer not null, primary key (series, epochs)
) strict, without rowid
"""

#: the generation of the last change of each kind of record
_KINDS = """
create table record_kind (kind text primary key, generation integer not null) strict, without rowid;
insert into record_kind select distinct kind, generation from record, state
"""

#: the store's random id, and the height: how many changes were committed (`acknowledged`)
_HEIGHT = """
alter table state add column id text not null default '';
update state set id = lower(hex(randomblob(16)));
alter table state add column height integer not null default 0;
alter table state add column accepted integer not null default 0
"""

#: from each version to the next; a step that was released never changes
STEPS = (_FIRST, _HOURLY, _RECOVERABLE, _KINDS, _HEIGHT)


def migrate_schema(
    database: sqlite3.Connection, name: str, steps: Sequence[str], *, make: bool
) -> None:
    """Make the tables of a new store, or bring an older one up to date; refuse a newer one."""
    _refuse_strange(database, name, make=make)
    refuse_newer(database, name, steps)
    for number in range(_version(database), len(steps)):
        _step(database, steps[number], number + 1)


def refuse_newer(database: sqlite3.Connection, name: str, steps: Sequence[str]) -> None:
    """Refuse tables that are newer than these steps: what they mean is not known here."""
    version = _version(database)
    if version > len(steps):
        raise StoreUnfit(
            f"{name} was written by a newer veilcount (schema {version}, this one knows"
            f" {len(steps)}): upgrade this one"
        )


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("pragma user_version").fetchone()[0])


def _refuse_strange(database: sqlite3.Connection, name: str, *, make: bool) -> None:
    application = int(database.execute("pragma application_id").fetchone()[0])
    empty = not database.execute("select count(*) from sqlite_schema").fetchone()[0]
    if not (make and empty) and application != APPLICATION:
        if empty:
            raise StoreUnfit(f"{name} is empty: make a store of it with `veilcount init`")
        raise StoreUnfit(f"{name} is not a veilcount store: give the path of one, or a new path")


def _step(database: sqlite3.Connection, step: str, version: int) -> None:
    """One step is one transaction: who is interrupted goes on from the last whole one."""
    database.execute("begin immediate")
    for statement in step.split(";\n"):
        database.execute(statement)
    database.execute(f"pragma application_id = {APPLICATION}")
    database.execute(f"pragma user_version = {version}")
    database.execute("commit")
