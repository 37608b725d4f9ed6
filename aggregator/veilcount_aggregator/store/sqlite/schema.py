"""The tables of a store, and the format that a file of them has."""

from __future__ import annotations

import sqlite3

from ...errors import StoreUnfit

#: of the tables; a file of another format is refused, so every change of them adds 1
FORMAT = 10

#: "veil": what tells a store from another program's database
APPLICATION = 0x7665696C

_SCRIPT = """
create table state (
    generation integer not null,
    read_only integer not null,
    id text not null, -- random
    height integer not null, -- how many changes were committed
    accepted integer not null -- when a loss was accepted last: microseconds since 1970
) strict;
insert into state values (0, 0, lower(hex(randomblob(16))), 0, 0);

create table record (
    kind text, key text, value blob not null, primary key (kind, key)
) strict, without rowid;

-- the generation of the last change of each kind of record
create table record_kind (kind text primary key, generation integer not null) strict, without rowid;

-- rows of the epochs below `deleted` are deleted, now or soon; the epochs from there to `dropped`
-- were dropped at the moments that `drop_mark` keeps, and their rows are whole
create table series (
    number integer primary key, fingerprint text not null unique,
    dropped integer not null default 0, deleted integer not null default 0
) strict;

create table drop_mark (
    series integer, epochs integer, at integer not null, primary key (series, epochs)
) strict, without rowid;

-- one bit a slot, slot 0 in the lowest of the first byte
create table ledger (
    series integer, epoch integer, row blob, spent blob not null,
    primary key (series, epoch, row)
) strict, without rowid;

create table new_rows (
    series integer, period integer, rows integer not null, primary key (series, period)
) strict, without rowid;

-- new rows by hour, series and source, for quotas; deleted when the hour is over
create table hourly (
    hour integer, series integer, source text, rows integer not null,
    primary key (hour, series, source)
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
    segment integer not null, level integer not null, form integer not null, body blob not null
) strict;
create index part_of on part (series, period, segment, level);

-- the entries of batches that shufflers hand over
create table batch (
    series integer, key text, entry blob not null, primary key (series, key)
) strict, without rowid;

-- the tokens that such batches have spent
create table spent_token (
    series integer, period integer, row blob, primary key (series, period, row)
) strict, without rowid;

create table service_counter (
    what text, fingerprint text, period integer, word text, times integer not null,
    primary key (what, fingerprint, period, word)
) strict, without rowid
"""


def prepare_tables(database: sqlite3.Connection, name: str, *, make: bool) -> None:
    """Refuse what is not a store of this format; make the tables of an empty file on request."""
    empty = not database.execute("select count(*) from sqlite_schema").fetchone()[0]
    if make and empty:
        _make(database)
    application = int(database.execute("pragma application_id").fetchone()[0])
    if application == APPLICATION:
        refuse_other_format(database, name)
    elif empty:
        raise StoreUnfit(f"{name} is empty: make a store of it with `veilcount init`")
    else:
        raise StoreUnfit(f"{name} is not a veilcount store: give the path of one, or a new path")


def refuse_other_format(database: sqlite3.Connection, name: str) -> None:
    """Refuse a store of another version: what its tables mean is not known here."""
    number = format_of(database)
    if number != FORMAT:
        raise StoreUnfit(
            f"{name} is a store of format {number}; this version reads {FORMAT}: run the version"
            " that made it, or make a new store"
        )


def format_of(database: sqlite3.Connection) -> int:
    """Read the format of a store's tables."""
    return int(database.execute("pragma user_version").fetchone()[0])


def _make(database: sqlite3.Connection) -> None:
    """Make all tables in one transaction; of two that come at once, the second finds them."""
    database.execute("begin immediate")
    if not format_of(database):
        for statement in _SCRIPT.split(";\n"):
            database.execute(statement)
        database.execute(f"pragma application_id = {APPLICATION}")
        database.execute(f"pragma user_version = {FORMAT}")
    database.execute("commit")
