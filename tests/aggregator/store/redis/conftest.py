"""Real servers: one, and a cluster of three; each test finds them empty."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from veilcount_aggregator.store.redis.store import RedisStore, open_redis

from ....redis_server import REDIS, RedisServer


@pytest.fixture
def store(server: RedisServer) -> Iterator[RedisStore]:
    opened = open_redis(server.url, make=True)
    yield opened
    opened.close()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that a test may kill, freeze, fill, and whose files it may cut."""
    (tmp_path / "redis").mkdir()
    started = RedisServer(tmp_path / "redis", maxmemory="32mb", aof_use_rdb_preamble="yes")
    yield started
    started.thaw()
    started.kill()


@contextmanager
def two_servers(folder: Path, program: str = REDIS) -> Iterator[tuple[RedisServer, RedisServer]]:
    """Start a master and one that may become its replica; it follows nobody yet."""
    servers = []
    for name in ("master", "replica"):
        (folder / name).mkdir()
        servers.append(RedisServer(folder / name, program=program, repl_diskless_sync_delay="0"))
    yield servers[0], servers[1]
    for server in servers:
        server.thaw()
        server.kill()
