"""A cluster grows from three masters to six while devices send: nothing is lost or doubled.

A shard waits while its own slot moves, and is counted by its new master after that; all others go
on. What a device is refused meanwhile it sends again.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from redis.crc import key_slot

from tests.redis_cluster import RedisCluster
from tests.redis_server import HOST
from tests.system.faults.campaign import Campaign
from tests.system.faults.honest_devices import Population
from tests.system.faults.store_verification import assert_consistent
from tests.system.server import wait_until
from veilcount_aggregator.store import open_store
from veilcount_aggregator.store.redis.identity import RECORDS_BASE
from veilcount_aggregator.store.redis.store import RedisStore

LONGEST_PAUSE = 10.0  # seconds: devices keep reports for days; a busy machine decides the figure


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RedisCluster]:
    """Three masters."""
    started = RedisCluster(tmp_path / "cluster")
    yield started
    started.close()


def bases(url: str) -> list[bytes]:
    """Return what a store's shards, and its records, are named after."""
    with closing(open_store(url)) as store:
        assert isinstance(store, RedisStore)
        return [RECORDS_BASE, *store.identity.bases]


def answered(population: Population) -> None:
    """Wait until every device was answered again."""
    now = time.monotonic()
    wait_until(lambda: population.answered_since(now), 60)


def grow_by_hand(cluster: RedisCluster, slots: list[int]) -> None:
    """Give half of each master's slots that have keys to a new one."""
    old = list(cluster.nodes)
    more = cluster.grow(3)
    for source, target in zip(old, more, strict=True):
        own = sorted(slot for slot in slots if cluster.holder(slot) is source)
        for slot in own[len(own) // 2 :]:
            cluster.move(slot, source, target)


@pytest.mark.full
def test_masters_are_added_and_shards_move_while_devices_send(
    cluster: RedisCluster, tmp_path: Path
) -> None:
    campaign = Campaign.write(tmp_path)
    with campaign.serve(cluster.url, "--workers", "2") as server:
        population = Population.create(campaign, server.port, seed=2)
        named = bases(cluster.url)
        with population.living():
            answered(population)
            grow_by_hand(cluster, list(map(key_slot, named)))
            answered(population)
        population.settle(60)
        population.close()
    shards = [cluster.holder(key_slot(base)).port for base in named[1:]]
    longest = max(device.longest for device in population.devices)
    print(f"longest pause of a device: {longest:.2f} s")

    assert [shards.count(node.port) for node in cluster.nodes] == [2] * 6
    assert population.wrong == []
    assert longest < LONGEST_PAUSE
    assert_consistent(cluster.url, campaign, population.acknowledged)


def interrupt(cluster: RedisCluster, slot: int) -> None:
    """Begin to move a slot, carry some of its keys, and leave it there."""
    source = cluster.holder(slot)
    target = next(node for node in cluster.nodes if node is not source)
    ids = [_name(node.ask("CLUSTER", "MYID")) for node in (source, target)]
    target.ask("CLUSTER", "SETSLOT", str(slot), "IMPORTING", ids[0])
    source.ask("CLUSTER", "SETSLOT", str(slot), "MIGRATING", ids[1])
    with source.connection() as connection:
        found = connection.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 5)
        assert found
        connection.migrate(HOST, target.port, found, 0, 5_000)


def cli(*words: str) -> None:
    """Run redis-cli's cluster commands, as the runbook has them."""
    done = subprocess.run(
        ["redis-cli", "--cluster", *words, "--cluster-yes"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="redis-cli is not there")
def test_the_runbook_s_commands_grow_a_cluster_and_shrink_it_again(
    cluster: RedisCluster, tmp_path: Path
) -> None:
    """`rebalance` over new masters, `fix` of a move that was interrupted, and back with weights of
    nothing; devices send all along.
    """
    campaign = Campaign.write(tmp_path)
    first = f"{HOST}:{cluster.nodes[0].port}"
    with campaign.serve(cluster.url, "--workers", "2") as server:
        population = Population.create(campaign, server.port, seed=3)
        named = bases(cluster.url)
        with population.living():
            answered(population)
            more = cluster.grow(3)
            for node in cluster.nodes:  # or a master without slots becomes another's replica
                node.ask("CONFIG", "SET", "cluster-allow-replica-migration", "no")
            pipeline = ("--cluster-pipeline", "100")
            cli("rebalance", first, "--cluster-use-empty-masters", *pipeline)
            shards = [cluster.holder(key_slot(base)).port for base in named[1:]]
            answered(population)
            interrupt(cluster, key_slot(named[1]))
            cli("fix", first)
            answered(population)
            weights = [f"{_name(node.ask('CLUSTER', 'MYID'))}=0" for node in more]
            cli("rebalance", first, "--cluster-weight", *weights)
            answered(population)
        population.settle(60)
        population.close()
    print(f"longest pause of a device: {max(each.longest for each in population.devices):.2f} s")

    assert len(set(shards)) == 6
    assert all(node.ask("DBSIZE") == 0 for node in more)
    assert population.wrong == []
    assert_consistent(cluster.url, campaign, population.acknowledged)


def _name(result: object) -> str:
    assert isinstance(result, bytes)
    return result.decode()
