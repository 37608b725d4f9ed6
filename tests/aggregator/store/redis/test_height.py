"""A shard that lacks acknowledged commits is refused: its file was cut, or is an older one."""

from __future__ import annotations

import shutil
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.errors import StoreWentBack
from veilcount_aggregator.store import Record, ServiceCounter
from veilcount_aggregator.store.acknowledged import AcknowledgedHeights, ShardHeight
from veilcount_aggregator.store.redis.store import RedisStore, open_redis

from ....redis_cluster import RedisCluster
from ....redis_server import RedisServer
from ....system.server import wait_until
from .conftest import two_servers
from .simulated_rows import count, is_taken, rows

COMMITS = 40
NOW = datetime(2026, 2, 1, tzinfo=UTC)
AOF = "appendonlydir"


def open_on(server: RedisServer, host: Path, *, make: bool = False) -> RedisStore:
    """Open the store as a host does that keeps its heights in a file."""
    return open_redis(server.url, make=make, acknowledged=AcknowledgedHeights(host))


def commit_one_by_one(store: RedisStore, seed: int, many: int = COMMITS) -> None:
    for row in rows(many, seed):
        assert count(store, row[None]) == 1


def cut(server: RedisServer, bytes_: int) -> None:
    """Kill a server, and cut the end of its append-only file, as a lost sector does."""
    server.kill()
    (file,) = (server.folder / AOF).glob("*.incr.aof")
    with file.open("rb+") as opened:
        opened.truncate(file.stat().st_size - bytes_)
    server.start()


@pytest.mark.parametrize("size", [3, 2_000])
def test_a_file_that_was_cut_is_refused_until_it_is_accepted(
    own: RedisServer, tmp_path: Path, size: int
) -> None:
    """Redis starts on it without a word; so did everything that looked at the store."""
    host = tmp_path / "host-height"
    with closing(open_on(own, host, make=True)) as store:
        commit_one_by_one(store, 1)
        cut(own, size)
        with pytest.raises(StoreWentBack, match="acknowledged commits"):
            count(store, rows(1, 2))

        assert not store.shards()[1].up
        assert store.shards()[1].went_back
    with closing(open_on(own, host)) as restarted:
        assert "lacks" in restarted.durability().weaknesses[0].where
        with pytest.raises(StoreWentBack):
            count(restarted, rows(1, 2))
        restarted.accept_losses(NOW)

        assert count(restarted, rows(1, 2)) == 1
        assert not restarted.durability().weaknesses
        assert not restarted.shards()[1].went_back
        assert count(restarted, rows(COMMITS, 1)) > 0  # what was lost


def test_a_whole_file_is_not_refused(own: RedisServer, tmp_path: Path) -> None:
    host = tmp_path / "host-height"
    with closing(open_on(own, host, make=True)) as store:
        commit_one_by_one(store, 1)
        own.kill()
        own.start()

        wait_until(lambda: is_taken(store))
        assert not store.losses()
        assert count(store, rows(COMMITS, 1)) == 0


def overtake(own: RedisServer, tmp_path: Path) -> bool:
    """Whether a host detects a loss that another, which had acknowledged less, has overtaken."""
    names = (tmp_path / "first", tmp_path / "second")
    with (
        closing(open_on(own, names[0], make=True)) as first,
        closing(open_on(own, names[1])) as second,
    ):
        commit_one_by_one(second, 1, 1)
        commit_one_by_one(first, 2)
        cut(own, 2_000)
        wait_until(lambda: is_taken(second))
        commit_one_by_one(second, 3, 2 * COMMITS)
        first.durability()
        return bool(first.losses())


@pytest.mark.parametrize("planted", [False, True], ids=["", "planted"])
def test_a_loss_is_detected_though_another_host_has_overtaken_it(
    own: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, planted: bool
) -> None:
    """Planted: heights without lives, which are overtaken."""

    def by_height_alone(self: ShardHeight, last: object) -> str:
        return "" if last is None or self.height >= last.height else "lacks"  # type: ignore[attr-defined]

    if planted:
        monkeypatch.setattr(ShardHeight, "loss", by_height_alone)

    assert overtake(own, tmp_path) != planted


def test_an_older_file_is_refused_by_a_host_that_was_away(own: RedisServer, tmp_path: Path) -> None:
    """Its lives since then are unknown to the shard."""
    host, saved = tmp_path / "host-height", tmp_path / "saved"
    with closing(open_on(own, host, make=True)) as store:
        commit_one_by_one(store, 1, 5)
    own.kill()
    shutil.copytree(own.folder / AOF, saved)
    own.start()
    with closing(open_on(own, host)) as store:
        commit_one_by_one(store, 2, 5)
        store.change_records(store.generation(), [Record("kind", "key", b"")])
    own.kill()
    shutil.rmtree(own.folder / AOF)
    shutil.copytree(saved, own.folder / AOF)
    own.start()
    with closing(open_on(own, host)) as store:
        with pytest.raises(StoreWentBack, match="older than commit"):
            count(store, rows(1, 3))
        with pytest.raises(StoreWentBack, match="records"):
            store.change_records(store.generation(), [Record("kind", "key", b"")])


def test_a_promotion_that_lost_acknowledged_commits_is_refused(tmp_path: Path) -> None:
    """Without `?replicas`, the replica has not heard of the last ones."""
    with two_servers(tmp_path) as (master, replica):
        with closing(open_on(master, tmp_path / "host", make=True)) as store:
            commit_one_by_one(store, 1, 5)
            replica.follow(master)
            replica.promote()  # it leaves
            commit_one_by_one(store, 2, 5)
        wait_until(lambda: not replica.rewriting)
        with (
            closing(open_on(replica, tmp_path / "host")) as promoted,
            pytest.raises(StoreWentBack, match="lacks 5 of 10"),
        ):
            count(promoted, rows(1, 3))


def test_a_host_that_was_killed_has_kept_what_it_acknowledged(
    own: RedisServer, tmp_path: Path
) -> None:
    """The file is written before the acknowledgement; nothing is closed or synced here."""
    host = tmp_path / "host-height"
    store = open_on(own, host, make=True)
    commit_one_by_one(store, 1, 7)

    last = AcknowledgedHeights(host).read(1)
    assert last is not None
    assert last.height == 7
    store.close()


def test_what_was_acknowledged_to_nobody_is_not_missed(own: RedisServer, tmp_path: Path) -> None:
    """Service counters are acknowledged to nobody."""
    host = tmp_path / "host-height"
    with closing(open_on(own, host, make=True)) as store:
        commit_one_by_one(store, 1, 2)
        for _ in range(COMMITS):
            store.commit([], {ServiceCounter("lost", "", -1, "a/b"): 1})
        cut(own, 300)
        store.durability()

        assert not store.losses()


def test_a_shard_that_moves_to_another_master_lacks_nothing(
    cluster: RedisCluster, tmp_path: Path
) -> None:
    host = AcknowledgedHeights(tmp_path / "host")
    with closing(open_redis(cluster.url, make=True, acknowledged=host)) as store:
        count(store, rows(200, 1))
        for node in cluster.nodes:
            node.kill()
        for node in cluster.nodes:
            node.start()
        cluster.wait()
        store.durability()

        assert not store.losses()
        assert count(store, rows(200, 2)) == 200
