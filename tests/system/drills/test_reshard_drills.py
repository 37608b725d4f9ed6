"""More shards, more masters: a store moves while devices send."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from ...processes import HOST
from ...redis_cluster import RedisCluster
from ...redis_server import RedisServer
from .test_key_drills import aggregator, drilled, send_more

TARGET = "redis-cluster://redis.example.org:6379"


def test_a_store_moves_to_more_shards_and_every_estimate_stays(tmp_path: Path) -> None:
    """Devices wait from the copy on, and go on by themselves."""
    (tmp_path / "old").mkdir()
    old, new = RedisServer(tmp_path / "old"), RedisCluster(tmp_path / "new")
    try:
        with aggregator(tmp_path, old.url) as (host, campaign):
            host.names[TARGET] = new.url
            with drilled("Move to more shards", host, campaign, 5) as (population, drill):
                send_more(population)
                drill.block()
                drill.block()
                drill.block()
                population.await_answers()

            assert host.store == f"{new.url}?shards=24"
    finally:
        old.kill()
        new.close()


@pytest.mark.full
@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="redis-cli is not there")
def test_a_cluster_grows_and_shrinks_while_devices_send(tmp_path: Path) -> None:
    with (
        closing(RedisCluster(tmp_path / "cluster")) as cluster,
        aggregator(tmp_path, cluster.url) as (host, campaign),
    ):
        with drilled("Grow a cluster", host, campaign, 6) as (population, drill):
            send_more(population)
            (master,) = cluster.grow(1)
            identity = master.ask("CLUSTER", "MYID").decode()
            host.names |= {
                "OLD_MASTER": f"{HOST}:{cluster.nodes[0].port}",
                "NEW_MASTER_ID": identity,
            }
            drill.block()
            has_keys = master.ask("DBSIZE") > 0
            drill.block()
            population.await_answers()
            drill.block()
            population.await_answers()

        assert has_keys
