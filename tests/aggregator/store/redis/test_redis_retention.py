"""Drops in Redis: by the server's own clock, and safe from what an older library did."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.aggregator.store.redis.simulated_rows import count, rows
from tests.aggregator.store.series_fixtures import LINKED, LONG_AGO
from tests.redis_cluster import RedisCluster
from tests.redis_server import RedisServer
from veilcount_aggregator.errors import RetentionTooEarly, StoreUnavailable
from veilcount_aggregator.store.redis.lua_library import call
from veilcount_aggregator.store.redis.store import RedisStore, open_redis

HOUR = timedelta(hours=1)


def test_the_server_itself_refuses_an_early_drop(server: RedisServer, store: RedisStore) -> None:
    """Whoever asks: the instant is compared with its own time, inside the function."""
    count(store, rows(100, 1))
    due = int((datetime.now(UTC) + HOUR).timestamp())
    words = call(
        "mark_dropped", store.identity.bases[0], store.identity.store, LINKED.fingerprint, 1, due
    )
    with server.connection() as connection, pytest.raises(Exception, match="TOOEARLY"):
        connection.execute_command(*words)

    assert count(store, rows(1, 2)) == 1
    with pytest.raises(RetentionTooEarly, match="veilcount doctor"):
        store.mark_dropped(
            LINKED, 1, datetime.now(UTC) + HOUR, datetime.now(UTC) + timedelta(days=40)
        )


def test_a_master_that_is_away_keeps_no_other_from_dropping_and_sweeping(
    cluster: RedisCluster,
) -> None:
    """Whichever it is: the first shard is on the master that is killed."""
    store = open_redis(cluster.url, make=True)
    count(store, rows(300, 1))
    first = store._servers.owner(store.identity.bases[0]).host[1]
    (master,) = (node for node in cluster.nodes if node.port == first)
    bases = [base for base in store.identity.bases if store._servers.owner(base).host[1] != first]
    before, times = _rows_of(store, bases), [len(store.server_times())]
    master.kill()
    with pytest.raises(StoreUnavailable):
        store.mark_dropped(LINKED, 1, LONG_AGO, datetime.now(UTC))
    with pytest.raises(StoreUnavailable):
        store.delete_dropped(LINKED, timedelta(0), LONG_AGO)
    after = _rows_of(store, bases)
    times.append(len(store.server_times()))
    master.start()
    cluster.wait()
    store.close()

    assert (before > 0, after, times) == (True, 0, [3, 2])


def _rows_of(store: RedisStore, bases: list[bytes]) -> int:
    """Return how many keys of rows these shards have."""
    keys = [store._servers.owner(base).ask("KEYS", f"{base.decode()}:[0-9]*") for base in bases]
    return sum(map(len, keys))
