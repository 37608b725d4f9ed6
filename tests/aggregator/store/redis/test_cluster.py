"""A cluster: shards are spread, keys stay together, and what is moving is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from redis.crc import key_slot
from redis.exceptions import ClusterCrossSlotError

from tests.aggregator.store.redis.simulated_rows import count, row_reports, rows
from tests.aggregator.store.series_fixtures import LINKED
from tests.redis_cluster import RedisCluster
from tests.redis_server import RedisServer
from tests.system.server import wait_until
from veilcount_aggregator.errors import StoreError, StoreUnfit
from veilcount_aggregator.store import COUNTED, UNDECIDED
from veilcount_aggregator.store.redis.identity import SHARDS, SLOTS, spread_bases
from veilcount_aggregator.store.redis.lua_library import LIBRARY
from veilcount_aggregator.store.redis.store import RedisStore, open_redis


@pytest.fixture
def store(cluster: RedisCluster) -> Iterator[RedisStore]:
    """A new store in the cluster, of a shard a master."""
    opened = open_redis(f"{cluster.url}?shards=3", make=True)
    yield opened
    opened.close()


@pytest.mark.parametrize("shards", [1, 2, 3, 12, 100])
def test_shards_are_spread_over_all_slots_evenly(shards: int) -> None:
    bases = spread_bases(b"", shards)
    ends = [SLOTS * shard // shards for shard in range(shards + 1)]

    assert all(ends[at] <= key_slot(base) < ends[at + 1] for at, base in enumerate(bases))


def test_each_master_has_a_third(cluster: RedisCluster, store: RedisStore) -> None:
    """Within four standard deviations."""
    count(store, rows(3_000, 1))
    held = [_rows(node) for node in cluster.nodes]

    assert sum(held) == 3_000
    assert all(abs(each - 1_000) < 4 * 26 for each in held)


def test_a_new_store_has_more_shards_than_masters(cluster: RedisCluster) -> None:
    """Twelve: 3, 4, 6 and 12 masters can share them evenly without a copy."""
    store = open_redis(cluster.url, make=True)
    homes = [cluster.holder(key_slot(base)).port for base in store.identity.bases]

    assert store.identity.shards == SHARDS == 12
    assert sorted(homes.count(node.port) for node in cluster.nodes) == [4, 4, 4]
    store.close()


def test_rows_of_one_master_are_one_lane(cluster: RedisCluster) -> None:
    """However many shards it has, so that groups stay as large; rows of two masters are several."""
    store = open_redis(cluster.url, make=True)
    lanes = {store.lane([row_reports(each.reshape(1, -1))]) for each in rows(200, 1)}

    assert lanes == {0, 4, 8}
    assert store.lane([row_reports(rows(200, 1))]) == -1
    store.close()


def test_each_shard_has_its_share_of_a_period_s_limit(store: RedisStore) -> None:
    """Together as many as the limit, but for what chance leaves free."""
    codes = store.commit([replace(row_reports(rows(2_000, 1)), new_pseudonym_limit=900)], {})[0]

    assert (codes == 0).sum() == 900
    assert store.new_pseudonyms(LINKED) == {0: 900}


def test_the_number_of_shards_is_for_good(cluster: RedisCluster) -> None:
    made = open_redis(f"{cluster.url}?shards=5", make=True)
    count(made, rows(100, 1))

    with pytest.raises(StoreUnfit, match=r"5 shards, for good.*veilcount store copy"):
        open_redis(f"{cluster.url}?shards=6", make=True)
    again = open_redis(cluster.url, make=False)
    assert count(again, rows(100, 1)) == 0
    made.close()
    again.close()


def test_a_function_cannot_reach_the_keys_of_another_slot(cluster: RedisCluster) -> None:
    """Redis refuses what the library would never ask."""
    store = open_redis(cluster.url, make=True)
    base, other, *_ = store.identity.bases
    words = ("FCALL", f"{LIBRARY}_commit", 2, base, other, store.identity.store, "")
    with cluster.nodes[0].connection() as connection, pytest.raises(ClusterCrossSlotError):
        connection.execute_command(*words)
    store.close()


def test_while_a_slot_moves_its_reports_wait_and_nothing_is_written(
    cluster: RedisCluster, store: RedisStore
) -> None:
    """The other shards go on; when the slot is back, everything is counted once."""
    first, second, _ = cluster.nodes
    count(store, rows(300, 1))
    slot = str(key_slot(store.identity.bases[0]))
    second.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", _name(first))
    first.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", _name(second))
    before = first.ask("DBSIZE")
    codes = store.commit([row_reports(rows(300, 2))], {})[0]

    assert first.ask("DBSIZE") == before
    for node in (first, second):
        node.ask("CLUSTER", "SETSLOT", slot, "STABLE")
    assert (codes == UNDECIDED).sum() == count(store, rows(300, 2))
    assert 150 < (codes == COUNTED).sum() < 250  # those of the other two shards
    assert sum(store.report_counts(LINKED).values()) == 600


def test_a_shard_that_has_moved_is_found_again(cluster: RedisCluster, store: RedisStore) -> None:
    """Moved as an operator moves it, key by key, while the store is open."""
    count(store, rows(300, 1))
    slot = key_slot(store.identity.bases[0])
    cluster.move(slot, cluster.nodes[0], cluster.nodes[1])

    assert count(store, rows(300, 1)) == 0
    assert count(store, rows(300, 2)) == 300
    assert cluster.nodes[1].ask("CLUSTER", "COUNTKEYSINSLOT", str(slot)) != 0
    cluster.move(slot, cluster.nodes[1], cluster.nodes[0])
    assert sum(store.report_counts(LINKED).values()) == 600


@pytest.mark.full  # with servers: tests/system/shards
def test_a_master_that_is_killed_stops_its_shard_alone_and_comes_back(tmp_path: Path) -> None:
    """Without a replica its shard waits; once it is back, every report is there."""
    cluster = RedisCluster(tmp_path, cluster_node_timeout="300")
    store = open_redis(f"{cluster.url}?shards=3", make=True)
    count(store, rows(300, 1))
    cluster.nodes[1].kill()
    codes = store.commit([row_reports(rows(300, 1))], {})[0]
    assert {int(code) for code in codes} == {1, int(UNDECIDED)}  # its own are not decided
    wait_until(lambda: _misses_one(cluster.nodes[0]))

    assert {_counts(store, number) for number in range(2, 26)} == {True, False}

    late = open_redis(cluster.url, make=True)  # an upgrade does not wait for it either
    assert (late.health().serving, late.health().shards) == (2, 3)
    late.close()

    cluster.nodes[1].start()
    cluster.wait()

    wait_until(lambda: all(_counts(store, number) for number in range(300)))
    assert count(store, rows(300, 1)) == 0
    assert sum(store.report_counts(LINKED).values()) == 300
    store.close()
    cluster.close()


def _counts(store: RedisStore, number: int) -> bool:
    """Whether a duplicate of one row is known: its shard answers."""
    try:
        return count(store, rows(300, 1)[number : number + 1]) == 0
    except StoreError:
        return False


def _misses_one(node: RedisServer) -> bool:
    """Whether a node knows by now that another is gone."""
    with node.connection() as connection:
        return "cluster_slots_fail:0" not in connection.execute_command("CLUSTER", "INFO").decode()


def _rows(node: RedisServer) -> int:
    with node.connection() as connection:
        return sum(connection.hlen(key) for key in connection.keys("veilcount:{*}:[0-9]*:*"))


def _name(node: RedisServer) -> str:
    with node.connection() as connection:
        return str(connection.execute_command("CLUSTER", "MYID").decode())
