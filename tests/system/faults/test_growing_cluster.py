"""A cluster grows from three masters to six while devices send: nothing is lost or doubled.

A shard waits while its own slot moves, and is counted by its new master after that; all others go
on. What a device is refused meanwhile it sends again.
"""

from __future__ import annotations

import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from redis.crc import key_slot

from veilcount_aggregator.store import open_store
from veilcount_aggregator.store.redis.store import RedisStore

from ...processes import HOST
from ...redis_cluster import RedisCluster
from .campaign import Campaign
from .honest_devices import Population
from .store_verification import assert_consistent


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
def test_the_runbook_s_commands_grow_a_cluster_and_shrink_it_again(tmp_path: Path) -> None:
    """`rebalance` over new masters, `fix` of a move that was interrupted, and back with weights of
    nothing; devices send all along.
    """
    campaign, cluster = Campaign.write(tmp_path), RedisCluster(tmp_path / "cluster")
    first = f"{HOST}:{cluster.nodes[0].port}"
    with campaign.serve(cluster.url, "--workers", "2") as server:
        population = Population.create(campaign, server.port, seed=3)
        with closing(open_store(cluster.url)) as store:
            assert isinstance(store, RedisStore)
            bases = store.identity.bases
        with population.living():
            population.await_answers()
            more = cluster.grow(3)
            for node in cluster.nodes:  # or a master without slots becomes another's replica
                node.ask("CONFIG", "SET", "cluster-allow-replica-migration", "no")
            pipeline = ("--cluster-pipeline", "100")
            cli("rebalance", first, "--cluster-use-empty-masters", *pipeline)
            shards = [cluster.holder(key_slot(base)).port for base in bases]
            population.await_answers()
            interrupt(cluster, key_slot(bases[0]))
            cli("fix", first)
            population.await_answers()
            weights = [f"{_name(node.ask('CLUSTER', 'MYID'))}=0" for node in more]
            cli("rebalance", first, "--cluster-weight", *weights)
            population.await_answers()
        population.settle(60)
        population.close()

    emptied = all(node.ask("DBSIZE") == 0 for node in more)
    try:
        assert len(set(shards)) == 6
        assert emptied
        assert population.wrong == []
        assert_consistent(cluster.url, campaign, population.acknowledged)
    finally:
        cluster.close()


def _name(result: object) -> str:
    assert isinstance(result, bytes)
    return result.decode()
