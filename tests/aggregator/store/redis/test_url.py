"""The URL of a store in Redis, whose password is never repeated."""

from __future__ import annotations

import pytest

from veilcount_aggregator.errors import SettingsError
from veilcount_aggregator.store.redis.url import RedisUrl


def test_one_server() -> None:
    assert RedisUrl.parse("redis://db:7000/3") == RedisUrl((("db", 7000),), database=3)


def test_the_default_port_is_6379() -> None:
    assert RedisUrl.parse("redis://db").hosts == (("db", 6379),)


def test_a_user_and_a_password_may_have_any_characters() -> None:
    address = RedisUrl.parse("rediss://me:p%40ss%3A@db:7000/0")

    assert (address.username, address.password, address.tls) == ("me", "p@ss:", True)


def test_a_cluster_may_have_several_addresses() -> None:
    address = RedisUrl.parse("redis-cluster://:secret@a:1,b:2,[::1]:3?shards=6&tls=on")

    assert address.hosts == (("a", 1), ("b", 2), ("::1", 3))
    assert (address.cluster, address.shards, address.tls) == (True, 6, True)


def test_replicas_may_be_waited_for() -> None:
    assert RedisUrl.parse("redis://db").replicas == 0
    assert RedisUrl.parse("redis://db?replicas=1").replicas == 1
    assert RedisUrl.parse("redis-cluster://a:1,b:2?replicas=2&shards=6").replicas == 2


def test_durability_may_be_relaxed() -> None:
    assert RedisUrl.parse("redis://db").durable
    assert not RedisUrl.parse("redis://db?durability=relaxed").durable


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "redis://db:port/0",
        "redis://db:70000/0",
        "redis://db/name",
        "redis://db/-1",
        "redis://db/0#space",
        "redis://db/0?shards=2",
        "redis://db/0?durability=none",
        "redis://db/0?timeout=9",
        "redis://db/0?replicas=0",
        "redis://db/0?replicas=6",
        "redis-cluster://db?replicas=one",
        "redis-cluster://db/1",
        "redis-cluster://a:1,,b:2",
        "redis-cluster://db?shards=0",
        "redis-cluster://db?shards=1000",
        "redis-cluster://db?tls=off",
    ],
)
def test_what_is_wrong_is_refused_with_a_fix(url: str) -> None:
    with pytest.raises(SettingsError, match="store = "):
        RedisUrl.parse(url)


def test_no_password_is_repeated() -> None:
    with pytest.raises(SettingsError) as caught:
        RedisUrl.parse("redis://me:hunter2@db/0?nothing=1")

    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(RedisUrl.parse("redis://me:hunter2@db/0"))
    assert "hunter2" not in str(RedisUrl.parse("redis://me:hunter2@db/0"))
