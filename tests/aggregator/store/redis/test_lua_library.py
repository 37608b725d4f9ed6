"""The function library: its name changes with its source, and old and new stand side by side."""

from __future__ import annotations

import pytest

from tests.aggregator.store.redis.simulated_rows import count, rows
from tests.redis_cluster import RedisCluster
from tests.redis_server import RedisServer
from veilcount_aggregator.store.redis import lua_library
from veilcount_aggregator.store.redis.lua_library import LIBRARY, body, name_of, source
from veilcount_aggregator.store.redis.store import RedisStore, open_redis


def test_no_change_of_the_lua_keeps_its_name() -> None:
    """Not even a comment: what a server has loaded under a name is what we have under it."""
    assert name_of(body()) == LIBRARY
    assert name_of(body() + " ") != LIBRARY
    assert source().startswith(f"#!lua name={LIBRARY}\n")


def test_servers_of_two_releases_share_a_redis(
    server: RedisServer, store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each calls its own functions; neither's loading takes the other's away."""
    count(store, rows(5, 1))
    older = body() + "\n-- of an older release"
    with monkeypatch.context() as patch:
        patch.setattr(lua_library, "LIBRARY", name_of(older))
        patch.setattr(lua_library, "source", lambda: older)
        text = f"#!lua name={name_of(older)}\nlocal LIBRARY = '{name_of(older)}'\n{older}"
        patch.setattr("veilcount_aggregator.store.redis.shard_client.source", lambda: text)
        assert count(store, rows(5, 2)) == 5
    listed = server.ask("FUNCTION", "LIST")

    assert count(store, rows(5, 3)) == 5
    assert isinstance(listed, list)
    assert {name.decode() for each in listed for name in each if isinstance(name, bytes)} >= {
        LIBRARY,
        name_of(older),
    }


def test_a_server_gets_the_library_when_it_is_called_and_no_other_does(
    cluster: RedisCluster,
) -> None:
    """So that an upgrade takes none of the masters but the one that is asked."""
    open_redis(cluster.url, make=True).close()
    for node in cluster.nodes:
        node.ask("FUNCTION", "FLUSH")
    store = open_redis(cluster.url, make=False)
    opened = [node.ask("FUNCTION", "LIST") for node in cluster.nodes]
    counted = count(store, rows(1, 1))

    assert opened == [[], [], []]
    assert counted == 1
    assert sum(node.ask("FUNCTION", "LIST") != [] for node in cluster.nodes) == 1
    store.close()
