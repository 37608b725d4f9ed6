"""A cluster of three masters for a module; each test leaves it whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from veilcount_aggregator.store.redis.store import RedisStore, open_redis

from ...redis_cluster import RedisCluster


@pytest.fixture(scope="module")
def masters(memory: Path) -> Iterator[RedisCluster]:
    """Three masters that notice within a second that one of them is gone."""
    with TemporaryDirectory(dir=memory) as folder:
        started = RedisCluster(Path(folder), cluster_node_timeout="500")
        yield started
        for node in started.nodes:
            node.thaw()
        started.close()


@pytest.fixture
def store(masters: RedisCluster) -> Iterator[RedisStore]:
    for node in masters.nodes:
        node.ask("FLUSHALL")
    opened = open_redis(f"{masters.url}?shards=3", make=True)
    yield opened
    opened.close()


@pytest.fixture
def records(masters: RedisCluster, store: RedisStore) -> int:
    """The master that keeps definitions and keys."""
    del store  # is made first
    (found,) = (
        at for at, node in enumerate(masters.nodes) if node.ask("KEYS", "veilcount:{records}")
    )
    return found
