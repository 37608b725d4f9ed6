"""The URL of a store in Redis, whose password is never repeated."""

from __future__ import annotations

import pytest

from veilcount_aggregator.errors import SettingsError
from veilcount_aggregator.store.redis.url import RedisUrl


@pytest.mark.parametrize(
    ("url", "parsed"),
    [
        ("redis://db:7000/3", RedisUrl((("db", 7000),), database=3)),
        ("redis://db?replicas=1", RedisUrl((("db", 6379),), replicas=1)),
        ("redis://db?durability=relaxed", RedisUrl((("db", 6379),), durable=False)),
        (
            "rediss://me:p%40ss%3A@db:7000/0",
            RedisUrl((("db", 7000),), username="me", password="p@ss:", tls=True),
        ),
        (
            "redis-cluster://:secret@a:1,b:2,[::1]:3?shards=6&tls=on&replicas=2",
            RedisUrl(
                (("a", 1), ("b", 2), ("::1", 3)),
                password="secret",
                cluster=True,
                shards=6,
                tls=True,
                replicas=2,
            ),
        ),
    ],
)
def test_a_url_is_read(url: str, parsed: RedisUrl) -> None:
    assert RedisUrl.parse(url) == parsed


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "redis://db:port/0",
        "redis://db/name",
        "redis://db/0#space",
        "redis://db/0?shards=2",
        "redis://db/0?durability=none",
        "redis://db/0?timeout=9",
        "redis://db/0?replicas=0",
        "redis://db/0?replicas=6",
        "redis-cluster://db/1",
        "redis-cluster://a:1,,b:2",
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
