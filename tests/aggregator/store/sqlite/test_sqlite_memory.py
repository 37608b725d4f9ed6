"""SQLite's account of counters' memory: kept by triggers, equal to what the rows have."""

from __future__ import annotations

import random
from pathlib import Path

from tests.aggregator.store.series_fixtures import (
    DAILY,
    drop_and_delete,
    message,
    report,
    send,
    series,
)
from tests.aggregator.store.sqlite.sqlite_fixtures import open_at
from veilcount_aggregator.store.memory_limit import TALLY_BYTES
from veilcount_aggregator.store.sqlite import SqliteStore
from veilcount_aggregator.store.sqlite.connection import SqliteUrl
from veilcount_aggregator.store.sqlite.database import SqliteDatabase
from veilcount_aggregator.store.sqlite.schema import PART_BYTES, STEPS

TALLIES = "select coalesce(sum(? + length(counters)), 0) from tally"
PARTS = "select coalesce(sum(? + length(body)), 0) from part"


def recounted(store: SqliteStore) -> int:
    with store.file.reading() as database:
        (tallies,) = database.execute(TALLIES, (TALLY_BYTES,)).fetchone()
        (parts,) = database.execute(PARTS, (PART_BYTES,)).fetchone()
    return int(tallies + parts)


def test_the_account_is_what_the_rows_have(tmp_path: Path) -> None:
    store, which, chance = open_at(tmp_path / "a.db"), series("plane"), random.Random(1)
    for group in range(70):
        reports = [report(10 * group + n, message=message(which, chance)) for n in range(9)]
        send(store, which, *reports)
        send(store, DAILY, report(group, group % 20))
        if group % 10 == 0:
            assert store.memory_use().total == recounted(store)
    grown = store.memory_use().total

    drop_and_delete(store, which, 1)
    assert recounted(store) == store.memory_use().total < grown
    target = open_at(tmp_path / "b.db")
    for _ in range(2):
        target.import_pieces(list(store.export_pieces()))
        assert target.memory_use().total == recounted(target)
    assert send(target, DAILY, *(report(900 + n, n) for n in range(25)))
    assert target.memory_use().total == recounted(target)
    store.close()
    target.close()


def test_an_older_store_is_counted_when_it_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    old = SqliteDatabase(SqliteUrl(path), STEPS[:1])
    old.open(make=True)
    with old.writing() as database:
        database.execute("insert into series (number, fingerprint) values (1, 'a'), (2, 'b')")
        database.execute("insert into tally values (1, 0, 0, 3, zeroblob(24), 0)")
        database.execute("insert into tally values (1, 1, 0, 3, zeroblob(24), 0)")
        database.execute("insert into tally values (2, 0, 0, 3, x'', 1)")
        database.execute(
            "insert into part (series, period, segment, level, dense, body)"
            " values (2, 0, 0, 0, 0, zeroblob(48))"
        )
    old.close()

    store = open_at(path)
    assert store.memory_use().series == {
        "a": 2 * (TALLY_BYTES + 24),
        "b": TALLY_BYTES + PART_BYTES + 48,
    }
    assert store.memory_use().total == recounted(store)
    store.close()
