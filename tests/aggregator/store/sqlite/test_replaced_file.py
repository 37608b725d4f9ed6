"""A backup is moved over the file of an open store, and is the store from then on."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.errors import StoreError, StoreUnavailable, StoreUnfit, StoreWentBack
from veilcount_aggregator.store import Cell
from veilcount_aggregator.store.backup import backup
from veilcount_aggregator.store.sqlite import database as database_module
from veilcount_aggregator.store.sqlite import health
from veilcount_aggregator.store.sqlite.store import SqliteStore
from veilcount_aggregator.store.sqlite.wal_guard import WalGuard
from veilcount_serving.structured_logging import NAME
from veilcount_shared.verdict import Verdict

from ..series_fixtures import LINKED, report, send
from .sqlite_fixtures import Writer, is_sound, open_at

#: rows of the backup, and those that are counted later, in many pages of the log
FIRST, LATER = range(1000), range(1000, 3000)
NOW = datetime(2026, 11, 24, tzinfo=UTC)


@pytest.fixture
def store(store: SqliteStore) -> SqliteStore:
    send(store, LINKED, *(report(number) for number in FIRST))
    return store


@pytest.fixture
def other(path: Path, store: SqliteStore) -> Iterator[Writer]:
    """Another process that has the store open."""
    writer = Writer(path)
    yield writer
    writer.kill()


def replace_by_backup(path: Path, store: SqliteStore) -> None:
    """Count what the backup lacks, and move the backup over the file that is open."""
    backup(f"sqlite:///{path}", path.with_name("backup.db"))
    for first in range(LATER.start, LATER.stop, 1000):
        send(store, LINKED, *(report(number) for number in range(first, first + 1000)))
    path.with_name("backup.db").replace(path)


@contextmanager
def long_reading(store: SqliteStore) -> Iterator[None]:
    """Read the earlier file meanwhile: its log cannot be written back."""
    with store.file.reading() as database:
        database.execute("select count(*) from ledger").fetchone()
        yield


def count(store: SqliteStore) -> object:
    """Count a row: it is refused until somebody accepts that the file lacks commits."""
    with suppress(StoreWentBack):
        send(store, LINKED, report(LATER[-1] + 1))
        assert not store.losses()
    store.accept_losses(NOW)
    return send(store, LINKED, report(LATER[-1] + 1))


def read(store: SqliteStore) -> object:
    return store.spend_histograms(LINKED)


def is_the_backup(path: Path, store: SqliteStore, other: Writer) -> bool:
    """Whether all that both processes count later comes to what the backup has, in whole pages."""
    try:
        store.accept_losses(NOW)
        other.count(LATER[0])
        counted = send(store, LINKED, report(FIRST[0]), report(LATER[1]))
        with closing(open_at(path, make=False)) as fresh:
            rows = fresh.report_counts(LINKED)[Cell(0, 0)]
            spent = fresh.spend_histograms(LINKED)[0][0]
            sound = is_sound(fresh) and is_sound(store)
    except (StoreError, sqlite3.Error, AssertionError, EOFError):
        return False
    verdicts = [Verdict.DUPLICATE, Verdict.COUNTED]
    return sound and counted == verdicts and rows == spent and rows - len(FIRST) in {2, 3}


@pytest.mark.parametrize("planted", [False, True], ids=["", "planted"])
@pytest.mark.parametrize("act", [count, read])
def test_a_backup_moved_over_the_open_file_is_the_store_in_every_process(
    path: Path,
    store: SqliteStore,
    other: Writer,
    act: Callable[[SqliteStore], object],
    monkeypatch: pytest.MonkeyPatch,
    *,
    planted: bool,
) -> None:
    """Whatever comes first: the log of the earlier file is applied to none of its pages.

    Planted: the log keeps its name.
    """
    if planted:
        monkeypatch.setattr(WalGuard, "_remove_names", lambda _: None)
    with long_reading(store):
        replace_by_backup(path, store)
        with suppress(StoreError) if planted else nullcontext():
            act(store)

    assert is_the_backup(path, store, other) != planted
    assert planted or store.health().trouble == ""


def test_a_process_that_opens_the_new_file_first_does_not_take_the_log_of_the_earlier_one(
    path: Path, store: SqliteStore, other: Writer
) -> None:
    replace_by_backup(path, store)
    with closing(open_at(path, make=False)) as fresh:
        assert fresh.report_counts(LINKED) == {Cell(0, 0): len(FIRST)}

    assert is_the_backup(path, store, other)


def test_a_replaced_file_is_logged_once(
    path: Path, store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, NAME)
    replace_by_backup(path, store)
    for _ in range(2):
        read(store)
        count(store)

    assert [record.msg for record in caplog.records] == ["store file replaced"]
    assert str(path.parent) not in caplog.text


def test_nothing_of_the_earlier_file_is_left_next_to_the_new_one(
    path: Path, store: SqliteStore
) -> None:
    replace_by_backup(path, store)
    count(store)
    store.close()

    assert {file.name for file in path.parent.iterdir()} == {
        "store.db",
        "store.db-lock",
        "store.db-height",
    }


def malformed() -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError("database disk image is malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


@pytest.mark.parametrize("connection", ["reading", "writing"])
def test_damage_that_a_new_connection_does_not_find_is_not_reported_as_damage(
    store: SqliteStore, connection: str
) -> None:
    """The call fails and may be repeated; nobody is sent for a backup, now or later."""
    with (
        pytest.raises(StoreUnavailable, match=r"finds no damage: try again.*doctor --deep"),
        getattr(store.file, connection)(),
    ):
        raise malformed()

    count(store)
    assert store.health().trouble == ""


def test_damage_is_reported_where_a_new_connection_cannot_read_all_pages_in_time(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a large store: nothing contradicts it."""
    monkeypatch.setattr(health, "STEPS", 1)
    monkeypatch.setattr(database_module, "PAGES_FOR_SECONDS", -1.0)
    with pytest.raises(StoreUnfit, match="restore a backup"), store.file.reading():
        raise malformed()

    assert store.health().trouble == health.DAMAGED
