"""A backup of a Redis store is one file of any engine's: each shard as of one moment, no half."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.aggregator.store.redis.simulated_rows import count, row_reports, rows
from tests.aggregator.store.series_fixtures import LINKED, everything, fill
from tests.redis_cluster import RedisCluster
from tests.redis_server import RedisServer
from veilcount_aggregator.errors import StoreReadOnly, StoreUnavailable, StoreUnfit
from veilcount_aggregator.store import open_store
from veilcount_aggregator.store.backup import backup, restore
from veilcount_aggregator.store.redis import read_only
from veilcount_aggregator.store.redis.store import RedisStore, open_redis
from veilcount_aggregator.store.restore_lock import release_lock_reason
from veilcount_aggregator.store.series_reports import Bytes


@pytest.fixture
def address(cluster: RedisCluster) -> str:
    return f"{cluster.url}?shards=6"


@pytest.fixture
def serving(address: str) -> Iterator[RedisStore]:
    store = open_redis(address, make=True)
    yield store
    store.close()


@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_restored_is_what_was_backed_up(
    serving: RedisStore,
    address: str,
    server: RedisServer,
    tmp_path: Path,
    read_only: bool,  # noqa: FBT001 - a case
) -> None:
    """Into SQLite and into another Redis, of other shards, but not over what is there."""
    fill(serving)
    serving.set_read_only(on=read_only)
    backup(address, tmp_path / "backup.db")
    assert [each.name for each in tmp_path.iterdir()] == ["backup.db"]
    for url in (f"sqlite:///{tmp_path}/again.db", server.url):
        restore(tmp_path / "backup.db", url)
        with closing(open_store(url)) as again:
            assert everything(again) == everything(serving)
            assert "journal" in (release_lock_reason(again) or "")
            assert again.health().read_only == read_only
    with pytest.raises(StoreUnfit, match="not empty"):
        restore(tmp_path / "backup.db", address)

    assert release_lock_reason(serving) is None
    assert serving.health().read_only == read_only
    names = ["again.db", "again.db-lock", "backup.db"]
    assert sorted(each.name for each in tmp_path.iterdir()) == names


def test_a_backup_is_consistent_while_devices_send(
    serving: RedisStore, address: str, tmp_path: Path
) -> None:
    """Of each shard: as many reports in counters as slots spent; all that came before is there."""
    done, acknowledged = threading.Event(), [0]

    def write() -> None:
        for number in range(100_000):
            if done.is_set():
                return
            while True:
                try:
                    serving.commit([row_reports(rows(20, 1000 + number))], {})
                    break
                except (StoreReadOnly, StoreUnavailable):
                    time.sleep(0.005)
            acknowledged[0] += 20

    count(serving, rows(3_000, 1))
    writer = threading.Thread(target=write)
    writer.start()
    while acknowledged[0] < 200:
        time.sleep(0.001)
    before = acknowledged[0]
    backup(address, tmp_path / "backup.db")
    after = acknowledged[0] + 20
    done.set()
    writer.join()
    restore(tmp_path / "backup.db", f"sqlite:///{tmp_path}/again.db")

    with closing(open_store(f"sqlite:///{tmp_path}/again.db")) as again:
        (sizes,) = again.report_counts(LINKED).values()
        spread = again.spend_histograms(LINKED)[0]
        counters = int(again.counters(LINKED, list(again.report_counts(LINKED))).sum())
        ledger = sum(
            len(piece.body) // (12 + int(piece.key.split("/")[2]))
            for piece in again.export_pieces()
            if piece.kind == "rows"
        )
        fresh = sum(again.new_pseudonyms(LINKED).values())
    assert sizes == counters == ledger == fresh == int((spread * np.arange(1, 64)).sum())
    assert 3_000 + before <= sizes <= 3_000 + after
    assert after > before, "nothing came meanwhile: nothing was shown"


def test_a_read_only_lock_that_is_left_ends_by_itself(
    serving: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_only, "HELD_MILLISECONDS", 300)
    held = serving.read_only_shard(0)
    held.__enter__()
    before = _counted(serving, rows(200, 1))
    time.sleep(0.5)

    assert before < 200
    assert before + _counted(serving, rows(200, 1)) == 200
    with pytest.raises(StoreUnavailable, match="did not stay read-only"):
        held.__exit__(None, None, None)


def test_a_backup_whose_read_only_lock_was_lost_fails(
    serving: RedisStore, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped for longer than the lock holds: reports may have come between."""
    monkeypatch.setattr(read_only, "HELD_MILLISECONDS", 1)
    count(serving, rows(2_000, 1))

    with pytest.raises(StoreUnavailable, match="run the backup again"):
        backup(address, tmp_path / "backup.db")
    assert list(tmp_path.iterdir()) == []


def test_a_copy_s_read_only_mode_stays_when_a_backup_ends(serving: RedisStore) -> None:
    """Whoever lifted another's lock would let in reports that the copy does not have."""
    with (
        pytest.raises(StoreUnavailable, match="did not stay read-only"),
        serving.read_only_shard(0),
    ):
        serving.set_read_only(on=True)

    with pytest.raises(StoreReadOnly):
        count(serving, rows(200, 1))


def _counted(store: RedisStore, who: Bytes) -> int:
    """Count reports; those of a shard that is read-only are refused, or left undecided."""
    try:
        return count(store, who)
    except StoreReadOnly:
        return 0
