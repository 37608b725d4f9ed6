"""Checkpoints by a connection of their own; the log begins anew where no reader prevents it."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from veilcount_aggregator.store import Record
from veilcount_aggregator.store.sqlite import checkpoints, database
from veilcount_aggregator.store.sqlite.checkpoints import Checkpoints
from veilcount_aggregator.store.sqlite.store import SqliteStore
from veilcount_shared.verdict import Verdict

from ..series_fixtures import LINKED, report, send
from .sqlite_fixtures import is_sound, open_at

PAGES = 10  # after which a log is written back here
LONG, MOST = 2 * PAGES, 8 * PAGES


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, pages in (("WAL_PAGES", PAGES), ("LONG_PAGES", LONG), ("MOST_PAGES", MOST)):
        monkeypatch.setattr(checkpoints, name, pages)
    monkeypatch.setattr(database, "WAL_BYTES", LONG * checkpoints.PAGE)


def log_pages(path: Path) -> int:
    return path.with_name(f"{path.name}-wal").stat().st_size // checkpoints.PAGE


def commit(store: SqliteStore, number: int) -> None:
    """Write a page or more, and let the checkpoint that this begins end."""
    assert send(store, LINKED, report(number)) == [Verdict.COUNTED]
    assert store.file._checkpoints is not None
    assert store.file._checkpoints.wait()


def test_a_log_is_written_back_and_begun_anew(path: Path, store: SqliteStore) -> None:
    for number in range(200):  # of which all pages would be over a thousand
        commit(store, number)

    assert log_pages(path) <= 2 * LONG
    assert is_sound(store)


def test_a_long_log_is_begun_anew_by_the_writer(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint alone does not reach the end of the log while groups are committed."""
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from sqlite_schema").fetchone()
        for number in range(30):
            commit(store, number)
    monkeypatch.setattr(checkpoints, "WAL_PAGES", 1 << 20)  # no other checkpoint follows
    for number in range(30, 32):
        commit(store, number)

    with closing(sqlite3.connect(path)) as other:
        _, logged, _ = other.execute("pragma wal_checkpoint(passive)").fetchone()
    assert logged < LONG


def test_rows_as_large_as_many_pages_are_written_back(path: Path, store: SqliteStore) -> None:
    content = None
    for number in range(40):
        previous, content = content, bytes([number]) * PAGES * checkpoints.PAGE
        assert store.change_record(Record("note", "large", content), previous)
        assert store.file._checkpoints is not None
        assert store.file._checkpoints.wait()

    assert log_pages(path) <= 3 * LONG


def test_a_reader_that_stays_keeps_the_log_and_no_commit(
    path: Path, store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    """One line says so; once the reader has ended the log grows no more."""
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from sqlite_schema").fetchone()
        for number in range(60):
            commit(store, number)
        grown = log_pages(path)
    for number in range(60, 260):
        commit(store, number)

    assert grown >= MOST
    assert log_pages(path) <= grown + LONG
    assert [entry.msg for entry in caplog.records] == ["write-ahead log grows"]


def test_a_checkpoint_that_takes_long_is_waited_for_where_the_log_is_too_long(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_back = Checkpoints._write_back

    def slow(those: Checkpoints) -> None:
        time.sleep(0.1)
        write_back(those)

    monkeypatch.setattr(Checkpoints, "_write_back", slow)
    longest = 0
    for number in range(150):
        assert send(store, LINKED, report(number)) == [Verdict.COUNTED]
        longest = max(longest, log_pages(path))

    assert MOST <= longest <= MOST + LONG


def test_a_checkpoint_that_fails_fails_no_commit(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    commit(store, 0)
    assert store.file._checkpoints is not None
    store.file._checkpoints._database.close()
    for number in range(1, 60):
        commit(store, number)

    assert [entry.msg for entry in caplog.records] == ["write-ahead log grows"]


def test_the_log_is_removed_with_the_store_that_is_closed(path: Path) -> None:
    with closing(open_at(path)) as store:
        for number in range(30):
            assert send(store, LINKED, report(number)) == [Verdict.COUNTED]

    assert not path.with_name(f"{path.name}-wal").exists()
    with closing(open_at(path)) as store:
        assert send(store, LINKED, report(29)) == [Verdict.DUPLICATE]
