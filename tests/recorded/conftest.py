"""A Redis server with what was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ..redis_server import RedisServer
from .world import read


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A server with the recorded keys."""
    with closing(RedisServer(tmp_path)) as server:
        for command in read("store.redis.json.gz"):
            server.ask(*map(bytes.fromhex, command))
        yield server
