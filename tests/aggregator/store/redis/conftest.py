"""Real servers: one, and a cluster of three; each test finds them empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.redis_cluster import RedisCluster
from tests.redis_server import RedisServer
from veilcount_aggregator.store.redis.store import RedisStore, open_redis


@pytest.fixture(scope="module")
def running(memory: Path) -> Iterator[RedisServer]:
    """One server for a module."""
    with TemporaryDirectory(dir=memory) as folder:
        started = RedisServer(Path(folder))
        yield started
        started.kill()


@pytest.fixture
def server(running: RedisServer) -> RedisServer:
    """The same, empty."""
    running.ask("FLUSHALL")
    return running


@pytest.fixture
def store(server: RedisServer) -> Iterator[RedisStore]:
    """A new store in it."""
    opened = open_redis(server.url, make=True)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def together(memory: Path) -> Iterator[RedisCluster]:
    """A cluster for a run."""
    with TemporaryDirectory(dir=memory) as folder:
        started = RedisCluster(Path(folder))
        yield started
        started.close()


@pytest.fixture
def cluster(together: RedisCluster) -> RedisCluster:
    """The same, empty."""
    for node in together.nodes:
        node.ask("FLUSHALL")
    return together
