"""A backup is one state of a serving store; what comes back has its releases locked."""

from __future__ import annotations

import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.aggregator.store.series_fixtures import DAILY, LINKED, Asked, row, send
from tests.aggregator.store.test_battery import everything, fill
from tests.redis_server import free_port
from veilcount_aggregator.errors import SettingsError, StoreUnavailable, StoreUnfit
from veilcount_aggregator.store import Record, Store, open_store
from veilcount_aggregator.store.backup import backup, restore
from veilcount_aggregator.store.restore_lock import (
    lock_releases,
    release_lock_reason,
    unlock_releases,
)
from veilcount_shared.verdict import Verdict

COUNTED, DUPLICATE = Verdict.COUNTED, Verdict.DUPLICATE


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Where a store of SQLite is."""
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def serving(place: str) -> Iterator[Store]:
    """That store, serving."""
    store = open_store(place, make=True)
    yield store
    store.close()


def test_releases_are_locked_and_unlocked(store: Store) -> None:
    """On any engine: why is kept, and other locks are not concerned."""
    assert release_lock_reason(store) is None

    lock_releases(store, "why")
    store.change_records(store.generation(), [Record("lock", "other", b"x")])
    assert release_lock_reason(store) == "why"

    unlock_releases(store)
    assert release_lock_reason(store) is None
    assert store.records("lock") == {"other": b"x"}


def test_a_restored_store_is_as_the_backup_was(serving: Store, place: str, tmp_path: Path) -> None:
    """What was counted later is not in it; it goes on from there, and its releases are locked."""
    fill(serving)
    before = everything(serving)
    backup(place, tmp_path / "backup.db")
    send(serving, LINKED, Asked(row(5000), 1))
    restore(tmp_path / "backup.db", f"sqlite:///{tmp_path}/again.db")
    again = open_store(f"sqlite:///{tmp_path}/again.db")

    assert everything(again) == before
    assert "journal" in (release_lock_reason(again) or "")
    assert release_lock_reason(serving) is None
    assert send(again, LINKED, Asked(row(2), 2), Asked(row(5000), 1)) == [DUPLICATE, COUNTED]
    again.close()


def test_a_backup_is_one_private_file(serving: Store, place: str, tmp_path: Path) -> None:
    """Nothing beside it, before or after it is looked at."""
    fill(serving)
    folder = tmp_path / "kept"
    folder.mkdir()
    backup(place, folder / "backup.db")
    with closing(sqlite3.connect(folder / "backup.db")) as database:
        (mode,) = database.execute("pragma journal_mode").fetchone()

    assert mode == "delete"
    assert [each.name for each in folder.iterdir()] == ["backup.db"]
    assert stat.S_IMODE((folder / "backup.db").stat().st_mode) == 0o600


def test_a_backup_while_serving_is_one_state(serving: Store, place: str, tmp_path: Path) -> None:
    """Every group whole or not at all, and all that was acknowledged before it began."""
    done = threading.Event()
    acknowledged: list[int] = []

    def write() -> None:
        for number in range(100_000):
            if done.is_set():
                return
            send(serving, DAILY, *(Asked(row(10 * number + n)) for n in range(10)))
            acknowledged.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    befores = []
    for number in range(5):
        while len(acknowledged) < 10 * (number + 1):
            time.sleep(0.001)
        befores.append(len(acknowledged))
        backup(place, tmp_path / f"{number}.db")
    done.set()
    writer.join()

    for number, before in enumerate(befores):
        restore(tmp_path / f"{number}.db", f"sqlite:///{tmp_path}/again{number}.db")
        again = open_store(f"sqlite:///{tmp_path}/again{number}.db")
        rows = again.spend_histograms(DAILY)[0][0]
        assert rows % 10 == 0
        assert rows == sum(again.report_counts(DAILY).values()) >= 10 * before
        again.close()


def test_a_read_only_store_comes_back_read_only(serving: Store, place: str, tmp_path: Path) -> None:
    """Its reports belong elsewhere still."""
    serving.set_read_only(on=True)
    backup(place, tmp_path / "backup.db")
    restore(tmp_path / "backup.db", f"sqlite:///{tmp_path}/again.db")
    again = open_store(f"sqlite:///{tmp_path}/again.db")

    assert again.health().read_only
    assert release_lock_reason(again)
    again.close()


def test_nothing_is_written_over(serving: Store, place: str, tmp_path: Path) -> None:
    """Neither a backup nor a store, nor what a removed store has left."""
    backup(place, tmp_path / "backup.db")

    with pytest.raises(SettingsError, match="new name"):
        backup(place, tmp_path / "backup.db")
    with pytest.raises(SettingsError, match="move it away"):
        restore(tmp_path / "backup.db", place)
    (tmp_path / "gone.db-wal").touch()
    with pytest.raises(SettingsError, match="move it away"):
        restore(tmp_path / "backup.db", f"sqlite:///{tmp_path}/gone.db")


def test_what_is_no_backup_makes_no_store(tmp_path: Path) -> None:
    """A missing file, another program's, one that is damaged."""
    theirs, noise, there = tmp_path / "theirs.db", tmp_path / "noise.db", tmp_path / "there.db"
    with closing(sqlite3.connect(theirs)) as database:
        database.execute("create table theirs (a)")
    noise.write_bytes(b"noise" * 1000)

    for given in (tmp_path / "none.db", theirs, noise):
        with pytest.raises(StoreUnfit):
            restore(given, f"sqlite:///{there}")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["noise.db", "theirs.db"]


def test_a_backup_of_no_store_is_none(tmp_path: Path) -> None:
    """It says so, and leaves no file."""
    with pytest.raises(StoreUnfit, match="no store there"):
        backup(f"sqlite:///{tmp_path}/none.db", tmp_path / "backup.db")
    with pytest.raises(SettingsError):
        backup("postgres://localhost", tmp_path / "backup.db")
    with pytest.raises(StoreUnavailable):
        backup(f"redis://localhost:{free_port()}/0", tmp_path / "backup.db")

    assert list(tmp_path.iterdir()) == []
