"""A backup is one state of a serving store; what comes back has its releases locked."""

from __future__ import annotations

import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from tests.aggregator.store.series_fixtures import DAILY, LINKED, everything, fill, report, send
from tests.redis_server import free_port
from tests.system.server import wait_until
from veilcount_aggregator.errors import SettingsError, StoreUnavailable, StoreUnfit
from veilcount_aggregator.store import Store, open_store
from veilcount_aggregator.store.backup import backup, restore
from veilcount_aggregator.store.restore_lock import release_lock_reason
from veilcount_shared.verdict import Verdict

COUNTED, DUPLICATE = Verdict.COUNTED, Verdict.DUPLICATE

Restored = Callable[[Path], AbstractContextManager[Store]]


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def serving(address: str) -> Iterator[Store]:
    with closing(open_store(address, make=True)) as store:
        yield store


@pytest.fixture
def restored(tmp_path: Path) -> Restored:
    @contextmanager
    def opened(file: Path) -> Iterator[Store]:
        url = f"sqlite:///{tmp_path}/again-{file.stem}.db"
        restore(file, url)
        with closing(open_store(url)) as again:
            yield again

    return opened


def test_a_backup_is_one_private_file_and_restores_to_the_same_store(
    serving: Store, address: str, tmp_path: Path, restored: Restored
) -> None:
    """What was counted later is not in it; it goes on from there, and its releases are locked."""
    fill(serving)
    before, folder = everything(serving), tmp_path / "backups"
    folder.mkdir()
    file = folder / "backup.db"
    backup(address, file)
    send(serving, LINKED, report(5000, 1))
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("pragma journal_mode").fetchone() == ("delete",)
    assert [each.name for each in folder.iterdir()] == ["backup.db"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    with restored(file) as again:
        assert everything(again) == before
        assert "journal" in (release_lock_reason(again) or "")
        assert release_lock_reason(serving) is None
        reports = [report(2, 2), report(5000, 1)]
        assert send(again, LINKED, *reports) == [DUPLICATE, COUNTED]


def test_a_backup_while_serving_is_one_state(
    serving: Store, address: str, tmp_path: Path, restored: Restored
) -> None:
    """Every group whole or not at all, and all that was acknowledged before it began."""
    done = threading.Event()
    acknowledged: list[int] = []

    def write() -> None:
        for number in range(100_000):
            if done.is_set():
                return
            send(serving, DAILY, *(report(10 * number + n) for n in range(10)))
            acknowledged.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    backups: dict[Path, int] = {}
    for number in range(1, 5):
        wait_until(lambda: len(acknowledged) >= 10 * number)  # noqa: B023 - at once
        file = tmp_path / f"{number}.db"
        backups[file] = len(acknowledged)
        backup(address, file)
    done.set()
    writer.join()

    for file, before in backups.items():
        with restored(file) as again:
            rows = again.spend_histograms(DAILY)[0][0]
            assert rows % 10 == 0
            assert rows == sum(again.report_counts(DAILY).values()) >= 10 * before


@pytest.mark.usefixtures("serving")
def test_nothing_is_written_over(address: str, tmp_path: Path) -> None:
    file = tmp_path / "backup.db"
    backup(address, file)

    with pytest.raises(SettingsError, match="new name"):
        backup(address, file)
    with pytest.raises(SettingsError, match="move it away"):
        restore(file, address)
    (tmp_path / "gone.db-wal").touch()
    with pytest.raises(SettingsError, match="move it away"):
        restore(file, f"sqlite:///{tmp_path}/gone.db")


def test_what_is_no_backup_makes_no_store(tmp_path: Path) -> None:
    theirs, noise, there = tmp_path / "theirs.db", tmp_path / "noise.db", tmp_path / "there.db"
    with closing(sqlite3.connect(theirs)) as database:
        database.execute("create table theirs (a)")
    noise.write_bytes(b"noise" * 1000)

    for file in (tmp_path / "none.db", theirs, noise):
        with pytest.raises(StoreUnfit):
            restore(file, f"sqlite:///{there}")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["noise.db", "theirs.db"]


def test_a_backup_of_no_store_leaves_no_file(tmp_path: Path) -> None:
    for url, error in [
        (f"sqlite:///{tmp_path}/none.db", StoreUnfit),
        ("postgres://localhost", SettingsError),
        (f"redis://localhost:{free_port()}/0", StoreUnavailable),
    ]:
        with pytest.raises(error):
            backup(url, tmp_path / "backup.db")

    assert list(tmp_path.iterdir()) == []
