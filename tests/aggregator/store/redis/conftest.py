"""Real servers: one, and a cluster of three; each test finds them empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from veilcount_aggregator.store.redis.store import RedisStore, open_redis

from ....redis_server import RedisServer


@pytest.fixture
def store(server: RedisServer) -> Iterator[RedisStore]:
    opened = open_redis(server.url, make=True)
    yield opened
    opened.close()
