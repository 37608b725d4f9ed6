"""Real servers: one, and a cluster of three; each test finds them empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.redis_cluster import RedisCluster
from tests.redis_server import RedisServer
from tests.system.server import wait_until
from veilcount_aggregator.store.redis.store import RedisStore, open_redis


@pytest.fixture(scope="session")
def running(memory: Path) -> Iterator[RedisServer]:
    with TemporaryDirectory(dir=memory) as folder:
        started = RedisServer(Path(folder))
        yield started
        started.kill()


@pytest.fixture
def server(running: RedisServer) -> RedisServer:
    wait_until(lambda: not running.rewriting, 60)  # its file, after a test of settings
    running.ask("FLUSHALL")
    return running


@pytest.fixture
def store(server: RedisServer) -> Iterator[RedisStore]:
    opened = open_redis(server.url, make=True)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def together(memory: Path) -> Iterator[RedisCluster]:
    with TemporaryDirectory(dir=memory) as folder:
        started = RedisCluster(Path(folder))
        yield started
        started.close()


@pytest.fixture
def cluster(together: RedisCluster) -> RedisCluster:
    for node in together.nodes:
        node.ask("FLUSHALL")
    return together
