"""A replica that takes over without the last release pays for no other from the budget it spent."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

import pytest
from redis.exceptions import ResponseError

from veilcount_aggregator.errors import StoreError
from veilcount_aggregator.store import open_store

from ...redis_cluster import RedisCluster
from ...redis_server import RedisServer
from ...system.server import wait_until
from ..curator_fixtures import OVER
from ..rewinding_store import AOF, Host, Rewindable, hosts, make, start, tick


def two_servers(folder: Path) -> list[RedisServer]:
    folders = [folder / name for name in ("one", "two")]
    for each in folders:
        each.mkdir()
    return [RedisServer(each) for each in folders]


@pytest.mark.full
def test_a_replica_that_lost_the_release_pays_for_no_other(tmp_path: Path) -> None:
    master, replica = two_servers(tmp_path)
    store = Rewindable(master.url, [], AOF, lambda: None, lambda: None)
    try:
        make(store)
        a, b = hosts(store, tmp_path, "a", "b")
        replica.ask("REPLICAOF", "127.0.0.1", str(master.port))
        wait_until(lambda: _follows(replica), 60)
        replica.ask("REPLICAOF", "NO", "ONE")  # the link is gone before the release is made
        tick(a, b)  # a master's first replica begins a line of history
        made = a.ask("count")
        master.kill()
        replica.ask("CONFIG", "SET", "port", str(master.port))
        replica.port = master.port
        start(a, b)
        waits, held = b.refusal("sum"), b.held()
        tick(a, b)

        assert made.charged
        assert (waits, held) == ("ReleasesWaiting", 0)
        assert [a.refusal("sum"), b.refusal("sum")] == ["ReleasesLocked"] * 2
    finally:
        store.close()
        master.kill()
        replica.kill()


def test_a_master_that_was_demoted_and_promoted_again_has_another_incarnation(
    tmp_path: Path,
) -> None:
    one, two = two_servers(tmp_path)
    try:
        with (
            closing(open_store(one.url, make=True)) as store,
            closing(open_store(one.url)) as other,
        ):
            first = [store.incarnation(), other.incarnation()]
            one.ask("REPLICAOF", "127.0.0.1", str(two.port))
            one.ask("REPLICAOF", "NO", "ONE")
            again = store.incarnation()
    finally:
        one.kill()
        two.kill()

    assert first[0] == first[1]
    assert again != first[0]
    assert again.split("-")[0] == first[0].split("-")[0]


@pytest.mark.full
def test_a_cluster_s_replica_that_lost_the_release_pays_for_no_other(tmp_path: Path) -> None:
    cluster = RedisCluster(tmp_path)
    owner = next(node for node in cluster.nodes if _has_records_slot(node))
    replica = cluster._node(
        tmp_path / "replica", {"cluster_enabled": "yes", "cluster_node_timeout": "2000"}
    )
    store = Rewindable(cluster.url, [], AOF, lambda: None, lambda: None)
    try:
        make(store)
        a, b = hosts(store, tmp_path, "a", "b")
        owner_id = _id(owner)
        replica.ask("CLUSTER", "MEET", "127.0.0.1", str(owner.port))
        wait_until(lambda: owner_id in str(replica.ask("CLUSTER", "NODES")), 60)
        wait_until(lambda: _accepts(replica, "CLUSTER", "REPLICATE", owner_id), 60)
        wait_until(lambda: _follows(replica), 60)
        tick(a, b)
        # It can fetch no more, and is known to all as this master's replica.
        replica.ask("CONFIG", "SET", "masteruser", "nobody")
        replica.ask("CONFIG", "SET", "masterauth", "wrong")
        replica.ask("CLIENT", "KILL", "TYPE", "master")
        wait_until(lambda: _link(replica) == "down")
        a.ask("count")
        owner.kill()
        replica.ask("CLUSTER", "FAILOVER", "TAKEOVER")
        wait_until(lambda: _held(b) == 0, 60)
        wait_until(lambda: _held(a) == 0, 60)
        waits = b.refusal("sum")
        tick(a, b)

        frozen = [a.refusal("sum"), b.refusal("sum")]
        a.store.accept_losses(OVER)
        tick(a, b)

        assert waits == "ReleasesWaiting"
        assert frozen == ["ReleasesLocked", "ReleasesWaiting"]  # A has acknowledged more
        assert [a.refusal("sum"), b.refusal("sum")] == ["ReleasesLocked"] * 2
    finally:
        store.close()
        replica.kill()
        cluster.close()


def _has_records_slot(node: RedisServer) -> bool:
    slot = int(str(node.ask("CLUSTER", "KEYSLOT", "veilcount:{records}")))
    with node.connection() as connection:
        found = connection.cluster("nodes")
    mine = next(each for each in found.values() if each["node_id"] == _id(node))
    ((first, last),) = mine["slots"]
    return int(first) <= slot <= int(last)


def _accepts(node: RedisServer, *command: str) -> bool:
    """Whether a node does what it is asked; it may not know another well enough yet."""
    with suppress(ResponseError):
        node.ask(*command)
        return True
    return False


def _held(host: Host) -> int | None:
    with suppress(StoreError):
        return host.held()
    return None


def _follows(replica: RedisServer) -> bool:
    """Whether a replica has all, and has rewritten its append-only file with it.

    Until then a kill takes everything, and the store refuses to write to it once it is promoted.
    """
    return _link(replica) == "up" and not replica.rewriting


def _link(replica: RedisServer) -> str:
    with replica.connection() as connection:
        return str(connection.info("replication").get("master_link_status"))


def _id(node: RedisServer) -> str:
    answer = node.ask("CLUSTER", "MYID")
    return answer.decode() if isinstance(answer, bytes) else str(answer)
