"""A Redis that answers reads and refuses writes shows in the health, and is probed seldom."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.redis_server import HOST, RedisServer, free_port
from veilcount_aggregator.store.redis import shard_health
from veilcount_aggregator.store.redis.shard_health import FULL, WriteProbe
from veilcount_aggregator.store.redis.store import RedisStore


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question writes, whoever asked before."""
    monkeypatch.setattr(shard_health, "PROBE_SECONDS", 0.0)


@pytest.fixture
def mended(server: RedisServer) -> Iterator[RedisServer]:
    yield server
    server.ask("CONFIG", "SET", "maxmemory", "0")
    server.ask("REPLICAOF", "NO", "ONE")


def test_exhausted_memory_is_reported(mended: RedisServer, store: RedisStore) -> None:
    mended.ask("CONFIG", "SET", "maxmemory", "1")
    assert store.health().trouble == FULL

    mended.ask("CONFIG", "SET", "maxmemory", "0")
    assert store.health().trouble == ""


def test_a_refused_write_is_reported_by_its_kind(mended: RedisServer, store: RedisStore) -> None:
    """Here of a replica; no address leaves, since anybody may ask /readyz."""
    mended.ask("REPLICAOF", HOST, str(free_port()))

    assert store.health().trouble == "a write failed: ReadOnlyError"


def test_probes_are_few(
    mended: RedisServer, store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_health, "PROBE_SECONDS", 5.0)
    seconds = iter([0.0, 0.0, 0.0, 4.9, 5.0, 5.0])
    probe = WriteProbe(store._servers, store.identity, lambda: next(seconds))
    assert probe.trouble() == ""
    mended.ask("CONFIG", "SET", "maxmemory", "1")

    assert [probe.trouble() for _ in range(2)] == ["", FULL]
