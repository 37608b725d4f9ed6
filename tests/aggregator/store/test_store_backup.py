"""A backup is one file, and one state of a serving store; it comes back with releases locked."""

from __future__ import annotations

import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.errors import StoreReadOnly, StoreUnavailable, StoreUnfit
from veilcount_aggregator.store import Cell, Store, open_store
from veilcount_aggregator.store.backup import backup, restore
from veilcount_aggregator.store.redis import read_only
from veilcount_aggregator.store.redis.store import RedisStore
from veilcount_aggregator.store.restore_lock import release_lock_reason
from veilcount_aggregator.store.series_reports import Bytes
from veilcount_aggregator.store.sql.transfer import merge
from veilcount_aggregator.store.sqlite import backup_file
from veilcount_serving.errors import SettingsError
from veilcount_shared.verdict import Verdict

from ...processes import free_port
from ...redis_server import RedisServer
from ...system.server import wait_until
from .conftest import emptied
from .redis.simulated_rows import count, rows
from .series_fixtures import (
    LINKED,
    counts,
    everything,
    fill,
    histograms,
    report,
    report_columns,
    send,
)

COUNTED, DUPLICATE = Verdict.COUNTED, Verdict.DUPLICATE


@pytest.fixture(params=["sqlite", "redis-cluster"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    return f"{emptied(request.getfixturevalue('redis_masters')).url}?shards=6"


sqlite_only = pytest.mark.parametrize("address", ["sqlite"], indirect=True)
of_shards = pytest.mark.parametrize("address", ["redis-cluster"], indirect=True)


@pytest.fixture
def serving(address: str) -> Iterator[Store]:
    with closing(open_store(address, make=True)) as store:
        yield store


@pytest.mark.parametrize("read_only", [False, True], ids=["writable", "read-only"])
def test_a_backup_is_one_private_file_and_restores_to_the_same_store(
    serving: Store, address: str, server: RedisServer, tmp_path: Path, *, read_only: bool
) -> None:
    """Of either engine, without what was counted later, its releases locked; not over a store."""
    fill(serving)
    serving.set_read_only(on=read_only)
    before, file = everything(serving), tmp_path / "backups" / "backup.db"
    file.parent.mkdir()
    backup(address, file)
    if not read_only:
        send(serving, LINKED, report(5000, 1))

    with closing(sqlite3.connect(file)) as database:
        assert database.execute("pragma journal_mode").fetchone() == ("delete",)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for url in [f"sqlite:///{tmp_path}/again.db", server.url][: 1 if read_only else 2]:
        restore(file, url)
        with closing(open_store(url)) as again:
            assert everything(again) == before
            assert "journal" in (release_lock_reason(again) or "")
            assert again.health().read_only == read_only
            again.set_read_only(on=False)
            assert send(again, LINKED, report(7, 60), report(5000, 1)) == [DUPLICATE, COUNTED]
    with pytest.raises((StoreUnfit, SettingsError), match=r"not empty|move it away"):
        restore(file, address)
    assert release_lock_reason(serving) is None
    assert serving.health().read_only == read_only
    assert [path.name for path in file.parent.iterdir()] == ["backup.db"]


def test_a_backup_is_consistent_while_devices_send(
    serving: Store, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each shard as of one moment, with all that was acknowledged before; a file's groups whole."""
    done, acknowledged = threading.Event(), [0]

    def write() -> None:
        for number in range(100_000):
            if done.is_set():
                return
            with suppress(StoreReadOnly, StoreUnavailable):
                group = [report(20 * number + n) for n in range(20)]
                serving.commit([report_columns(LINKED, group)], {})
                acknowledged[0] += 20

    writer = threading.Thread(target=write)
    writer.start()
    wait_until(lambda: acknowledged[0] >= 200)
    before = acknowledged[0]

    def merge_after_more(*arguments: Any) -> None:
        wait_until(lambda: acknowledged[0] > before)
        merge(*arguments)

    monkeypatch.setattr(backup_file, "merge", merge_after_more)
    backup(address, tmp_path / "backup.db")
    after = acknowledged[0]
    done.set()
    writer.join()
    restore(tmp_path / "backup.db", f"sqlite:///{tmp_path}/again.db")

    with closing(open_store(f"sqlite:///{tmp_path}/again.db")) as again:
        (reports,) = again.report_counts(LINKED).values()
        ledger = sum(
            len(export_piece.body) // 20
            for export_piece in again.export_pieces()
            if export_piece.kind == "rows"
        )
        assert sum(counts(again, LINKED, Cell(0, 0))) == ledger == reports
        assert histograms(again, LINKED)[0][0] == reports
        assert again.new_pseudonyms(LINKED) == {0: reports}
    assert before <= reports <= after + 20
    assert after > before or "redis" not in address
    assert reports % 20 == 0 or "redis" in address


@sqlite_only
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
        with pytest.raises((StoreUnfit, SettingsError), match=r"give a file that|give the path"):
            restore(file, f"sqlite:///{there}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["noise.db", "theirs.db"]


def test_a_backup_of_no_store_leaves_no_file(tmp_path: Path) -> None:
    for url, error in [
        (f"sqlite:///{tmp_path}/none.db", StoreUnfit),
        ("postgres://localhost", SettingsError),
        (f"redis://localhost:{free_port()}/0", StoreUnavailable),
    ]:
        with pytest.raises(error):
            backup(url, tmp_path / "backup.db")

    assert list(tmp_path.iterdir()) == []


# -- each shard of a cluster is read-only while it is read -----------------------------------------


def counted(store: RedisStore, who: Bytes) -> int:
    """Count reports; those of a shard that is read-only are refused, or left undecided."""
    try:
        return count(store, who)
    except StoreReadOnly:
        return 0


@of_shards
def test_a_read_only_lock_that_is_left_ends_by_itself(
    serving: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_only, "HELD_MILLISECONDS", 300)
    held = serving.read_only_shard(0)
    held.__enter__()
    before = counted(serving, rows(200, 1))
    time.sleep(0.5)

    assert before < 200
    assert before + counted(serving, rows(200, 1)) == 200
    with pytest.raises(StoreUnavailable, match="did not stay read-only"):
        held.__exit__(None, None, None)


@of_shards
def test_a_backup_whose_read_only_lock_was_lost_fails(
    serving: RedisStore, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped for longer than the lock holds: reports may have come between."""
    monkeypatch.setattr(read_only, "HELD_MILLISECONDS", 1)
    count(serving, rows(2_000, 1))

    with pytest.raises(StoreUnavailable, match="run the backup again"):
        backup(address, tmp_path / "backup.db")
    assert list(tmp_path.iterdir()) == []


@of_shards
def test_a_copy_s_read_only_mode_stays_when_a_backup_ends(serving: RedisStore) -> None:
    """Whoever lifted another's lock would let in reports that the copy does not have."""
    with (
        pytest.raises(StoreUnavailable, match="did not stay read-only"),
        serving.read_only_shard(0),
    ):
        serving.set_read_only(on=True)
    with pytest.raises(StoreReadOnly):
        count(serving, rows(200, 1))
