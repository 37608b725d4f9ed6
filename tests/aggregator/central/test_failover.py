"""A replica that takes over without the last release pays for no other from the budget it spent."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.aggregator.rewinding_store import AOF, Rewindable, hosts, make, start, tick
from tests.redis_server import RedisServer
from tests.system.server import wait_until
from veilcount_aggregator.store import open_store


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
        wait_until(lambda: _link(replica) == "up")
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


def _link(replica: RedisServer) -> str:
    with replica.connection() as connection:
        return str(connection.info("replication").get("master_link_status"))
