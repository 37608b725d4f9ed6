"""A store of each engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from veilcount_aggregator.store import Store, open_store

from ...redis_cluster import RedisCluster
from ...redis_server import REDIS, VALKEY, RedisServer
from ...system.server import wait_until
from .engines import ENGINES, Empty


@contextmanager
def served(engine: str, memory: Path) -> Iterator[Empty]:
    with TemporaryDirectory(dir=memory) as folder, ENGINES[engine](Path(folder)) as serving:
        yield serving


#: a cluster with one shard has the shard of one server and the routing of three shards, which
#: redis/test_shards.py runs the battery over, and Valkey has some of it in redis/test_valkey.py
BY_DEFAULT = {"memory", "sqlite", "redis"}
ENGINE_PARAMS = [
    name if name in BY_DEFAULT else pytest.param(name, marks=pytest.mark.full) for name in ENGINES
]
#: those that outlive a process and serve several
OPERATED = [param for param in ENGINE_PARAMS if param != "memory"]
#: the programs that the tests in redis/ run on
PROGRAMS = [REDIS, pytest.param(VALKEY, marks=pytest.mark.full)]


@pytest.fixture(scope="package", params=ENGINE_PARAMS)
def empty(request: pytest.FixtureRequest, memory: Path) -> Iterator[Empty]:
    """An engine: called, it gives the URL of an empty store."""
    with served(request.param, memory) as serving:
        yield serving


@pytest.fixture(scope="package", params=ENGINE_PARAMS)
def another(request: pytest.FixtureRequest, memory: Path) -> Iterator[Empty]:
    """A second engine, which runs with the first and may be of another kind."""
    with served(request.param, memory) as serving:
        yield serving


@pytest.fixture
def url(empty: Empty) -> str:
    return empty()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url, make=True)
    yield opened
    opened.close()


@pytest.fixture
def target(another: Empty) -> Iterator[Store]:
    opened = open_store(another(), make=True)
    yield opened
    opened.close()


# -- servers: each test finds them empty -----------------------------------------------------------


@pytest.fixture(scope="package", params=PROGRAMS)
def running(request: pytest.FixtureRequest, memory: Path) -> Iterator[RedisServer]:
    with TemporaryDirectory(dir=memory) as folder:
        started = RedisServer(Path(folder), program=request.param)
        yield started
        started.kill()


@pytest.fixture
def server(running: RedisServer) -> RedisServer:
    wait_until(lambda: not running.rewriting, 60)  # its file, after a test of settings
    running.ask("FLUSHALL")
    return running


@contextmanager
def masters(program: str, memory: Path) -> Iterator[RedisCluster]:
    with TemporaryDirectory(dir=memory) as folder:
        started = RedisCluster(Path(folder), program=program)
        yield started
        started.close()


@pytest.fixture(scope="package")
def redis_masters(memory: Path) -> Iterator[RedisCluster]:
    with masters(REDIS, memory) as started:
        yield started


@pytest.fixture(scope="package")
def valkey_masters(memory: Path) -> Iterator[RedisCluster]:
    with masters(VALKEY, memory) as started:
        yield started


@pytest.fixture(params=PROGRAMS)
def cluster(request: pytest.FixtureRequest) -> RedisCluster:
    name = {REDIS: "redis_masters", VALKEY: "valkey_masters"}[request.param]
    started: RedisCluster = request.getfixturevalue(name)
    return emptied(started)


def emptied(started: RedisCluster) -> RedisCluster:
    for node in started.nodes:
        node.ask("FLUSHALL")
    return started
