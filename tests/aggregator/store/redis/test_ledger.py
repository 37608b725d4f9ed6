"""Linear hashing in Redis: every row is found, every bucket small, and all of it in few bytes."""

from __future__ import annotations

import numpy as np
import pytest

from veilcount_aggregator.store.redis.store import RedisStore, open_redis
from veilcount_aggregator.store.series_reports import Bytes

from ....redis_server import RedisServer
from ..series_fixtures import LINKED, UNLINKED, drop_and_delete
from .simulated_rows import GROUP, count, rows

MOST_BYTES = 32  # a row of up to 64 slots, all keys and what Redis wastes included
PACKED = 128  # entries up to which a hash is one packed list
LOAD = 40


def buckets(server: RedisServer) -> dict[bytes, int]:
    with server.connection() as connection:
        keys = connection.keys("veilcount:{*}:[0-9]*:*")
        return {key: connection.hlen(key) for key in keys}


def used(server: RedisServer) -> int:
    with server.connection() as connection:
        return int(connection.info("memory")["used_memory"])


@pytest.mark.parametrize("many", [1, 40, 41, 5_011])
def test_every_row_is_found_again_and_every_bucket_is_packed(
    server: RedisServer, store: RedisStore, many: int
) -> None:
    who = rows(many, many)

    assert count(store, who) == many
    assert count(store, who) == 0

    found = buckets(server).values()

    assert sum(found) == many
    assert max(found) <= PACKED
    assert len(found) >= many / (3 * LOAD)
    with server.connection() as connection:
        encodings = {connection.object("ENCODING", key) for key in buckets(server)}
    assert encodings == {b"listpack"}


def test_a_ledger_that_grows_row_by_row_is_one_that_came_at_once(
    server: RedisServer, store: RedisStore
) -> None:
    who = rows(500, 1)
    count(store, who)
    at_once = sorted(buckets(server).values())
    drop_and_delete(store, LINKED, 1)
    for first in range(0, 500, 3):
        count(store, who[first : first + 3], 0, UNLINKED)

    assert sorted(buckets(server).values()) == at_once


def test_rows_chosen_to_share_a_bucket_do_not(server: RedisServer, store: RedisStore) -> None:
    """Their bytes are the same but for those that a plain ledger would not look at."""
    who: Bytes = np.zeros((5_000, 12), np.uint8)
    who[:, 2:4] = np.arange(5_000, dtype=">u2").view(np.uint8).reshape(-1, 2)
    who[:, 11] = 7
    count(store, who)

    assert max(buckets(server).values()) <= PACKED


@pytest.mark.parametrize(
    ("many", "slots"),
    [
        (20_000, 1),
        (20_000, 63),
        pytest.param(1_000_000, 63, marks=pytest.mark.full),
        pytest.param(10_000_000, 1, marks=[pytest.mark.full, pytest.mark.timeout(3600)]),
    ],
)
def test_a_pseudonym_takes_few_bytes(server: RedisServer, many: int, slots: int) -> None:
    """At a million, at most 32, with one slot spent or all of them; below, keys weigh more."""
    server.ask("CONFIG", "SET", "appendfsync", "no")
    server.ask("CONFIG", "SET", "appendonly", "no")
    store = open_redis(f"{server.url}?durability=relaxed", make=True)
    count(store, rows(GROUP, 1), 0, UNLINKED)  # what is allocated once, for whatever comes
    drop_and_delete(store, UNLINKED, 1)
    before = used(server)
    for first in range(0, many, 100_000):
        who = rows(min(many, 100_000), first)
        count(store, who, LINKED.bits - 1 if slots > 1 else 0)
    server.ask("CONFIG", "SET", "appendonly", "yes")
    server.ask("CONFIG", "SET", "appendfsync", "always")
    each = (used(server) - before) / many
    store.close()

    assert each <= (MOST_BYTES if many >= 1_000_000 else 1.4 * MOST_BYTES)
