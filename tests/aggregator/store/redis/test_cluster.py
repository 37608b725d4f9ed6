"""A cluster: shards are spread, what is moving is left alone, records are copied to each master."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from redis.crc import key_slot

from veilcount_aggregator.errors import StoreUnfit
from veilcount_aggregator.records.cache import REPLICATED
from veilcount_aggregator.records.definitions import DefinitionSource, add_definitions
from veilcount_aggregator.store import COUNTED, UNDECIDED, Record
from veilcount_aggregator.store.redis.identity import RECORDS_BASE, SHARDS, SLOTS, spread_bases
from veilcount_aggregator.store.redis.records import copy_bases
from veilcount_aggregator.store.redis.store import RedisStore, open_redis

from ....redis_cluster import RedisCluster
from ....redis_server import RedisServer
from ....system.server import wait_until
from ...web.api.deployment_fixtures import FILE
from ..series_fixtures import LINKED
from .simulated_rows import count, row_reports, rows


@pytest.fixture
def store(cluster: RedisCluster) -> Iterator[RedisStore]:
    opened = open_redis(f"{cluster.url}?shards=3", make=True)
    yield opened
    opened.close()


@pytest.mark.parametrize("shards", [1, 2, 3, 12, 100])
def test_shards_are_spread_over_all_slots_evenly(shards: int) -> None:
    bases = spread_bases(b"", shards)
    ends = [SLOTS * shard // shards for shard in range(shards + 1)]

    assert all(ends[at] <= key_slot(base) < ends[at + 1] for at, base in enumerate(bases))


def test_a_new_store_has_more_shards_than_masters(
    cluster: RedisCluster,
) -> None:
    """Twelve: 3, 4, 6 and 12 masters can share them evenly without a copy."""
    store = open_redis(cluster.url, make=True)
    homes = [cluster.holder(key_slot(base)).port for base in store.identity.bases]

    assert store.identity.shards == SHARDS == 12
    assert sorted(homes.count(node.port) for node in cluster.nodes) == [4, 4, 4]
    store.close()


def test_each_shard_has_its_share_of_a_period_s_limit(store: RedisStore) -> None:
    """Together as many as the limit, but for what chance leaves free."""
    codes = store.commit([row_reports(rows(2_000, 1), limit=900)], {})[0]

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
    count(store, rows(300, 1))
    slot = key_slot(store.identity.bases[0])
    cluster.move(slot, cluster.nodes[0], cluster.nodes[1])

    assert count(store, rows(300, 1)) == 0
    assert count(store, rows(300, 2)) == 300
    assert cluster.nodes[1].ask("CLUSTER", "COUNTKEYSINSLOT", str(slot)) != 0
    cluster.move(slot, cluster.nodes[1], cluster.nodes[0])
    assert sum(store.report_counts(LINKED).values()) == 600


def _name(node: RedisServer) -> str:
    with node.connection() as connection:
        return str(connection.execute_command("CLUSTER", "MYID").decode())


# -- copies of the records -------------------------------------------------------------------------


NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)


def test_each_master_has_one_copy_of_now(cluster: RedisCluster, store: RedisStore) -> None:
    add_definitions(store, DefinitionSource(FILE), NOW, "cli")
    store.replicate(REPLICATED)
    store.replicate(REPLICATED)
    held = [node.ask("KEYS", "veilcount:{copy.*") for node in cluster.nodes]

    assert [len(each) for each in held if isinstance(each, list)] == [1, 1, 1]
    assert store.replica("source") == (store.generation(), store.records("source"))


def test_a_replication_that_misses_a_master_is_incomplete(
    cluster: RedisCluster, store: RedisStore
) -> None:
    """As on a busy machine: its copy is to be written soon, not a minute later."""
    records = store._servers.owner(RECORDS_BASE).host[1]
    other = next(node for node in cluster.nodes if node.port != records)
    with other.frozen():
        assert not store.replicate(REPLICATED)

    wait_until(lambda: store.replicate(REPLICATED))
    assert len(other.ask("KEYS", "veilcount:{copy.*")) == 1


def test_a_copy_that_is_newer_than_the_records_gives_way(store: RedisStore) -> None:
    """They came back from older files: what they hold now is in force."""
    store.replicate(("kind",))
    for base in copy_bases():
        owner = store._servers.owner(base)
        if owner.ask("EXISTS", base):
            owner.ask("HSET", base, "generation", 1_000)
    store.change_records(store.generation(), [Record("kind", "name", b"value")])
    store.replicate(("kind",))

    assert store.replica("kind") == (store.generation(), {"name": b"value"})
