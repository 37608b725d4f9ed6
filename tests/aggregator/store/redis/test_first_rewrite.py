"""Nothing is acknowledged by a server whose append-only file is not complete yet.

A server that was synchronized by another rewrites its file, and keeps everything in memory until
that rewrite ends: a kill takes all of it. A delay of each key (`rdb-key-save-delay`) holds the
rewrite for as long as a test looks at it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from veilcount_aggregator.errors import StoreError, StoreUnavailable, StoreUnfit
from veilcount_aggregator.store.redis import durable_writes
from veilcount_aggregator.store.redis.durability import DurabilityMonitor
from veilcount_aggregator.store.redis.store import open_redis

from ....redis_server import RedisServer
from ....system.server import wait_until
from .conftest import two_servers
from .simulated_rows import count, is_taken, rows

HELD_MICROSECONDS = "60000000"  # for each key: longer than any test
#: a claim, and the error that it must not survive
with_the_error = pytest.mark.parametrize("planted", [False, True], ids=["", "planted"])


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable_writes, "WAIT_MILLISECONDS", 600)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[RedisServer, RedisServer]]:
    with two_servers(tmp_path) as servers:
        yield servers


def hold_rewrites(server: RedisServer) -> None:
    server.ask("CONFIG", "SET", "rdb-key-save-delay", HELD_MICROSECONDS)


def finish_rewrites(server: RedisServer) -> None:
    """End the child that was held; the server starts another, which nothing holds."""
    server.ask("CONFIG", "SET", "rdb-key-save-delay", "0")
    for child in server.children():
        os.kill(child, signal.SIGUSR1)
    wait_until(lambda: not server.rewriting, 60)


def promote_during_rewrite(master: RedisServer, replica: RedisServer) -> None:
    """Promote a replica in its first rewrite, as if no setting of it had ever been changed."""
    with closing(open_redis(master.url, make=True)) as store:
        count(store, rows(30, 1))
    hold_rewrites(replica)
    replica.follow(master)
    replica.ask("CONFIG", "RESETSTAT")
    replica.promote()
    assert replica.rewriting


@with_the_error
def test_a_server_that_is_promoted_during_its_first_rewrite_acknowledges_nothing(
    pair: tuple[RedisServer, RedisServer], monkeypatch: pytest.MonkeyPatch, *, planted: bool
) -> None:
    """And a kill takes all that it had. Planted: one that is whole at first sight."""
    if planted:
        monkeypatch.setattr(DurabilityMonitor, "_is_whole", lambda _, __: True)
    master, replica = pair
    promote_during_rewrite(master, replica)
    with closing(open_redis(replica.url, make=False)) as promoted:
        if planted:
            assert count(promoted, rows(30, 2)) == 30
        else:
            with pytest.raises(StoreUnfit, match="not complete"):
                count(promoted, rows(30, 2))
            assert promoted.health().blocked
    replica.kill()
    replica.start()

    with pytest.raises(StoreUnfit, match="no store there"):
        open_redis(replica.url, make=False)


def test_after_its_first_rewrite_a_promoted_server_acknowledges_and_keeps_all(
    pair: tuple[RedisServer, RedisServer],
) -> None:
    master, replica = pair
    promote_during_rewrite(master, replica)
    with closing(open_redis(replica.url, make=False)) as promoted:
        assert not is_taken(promoted)
        finish_rewrites(replica)
        wait_until(lambda: is_taken(promoted))
    replica.kill()
    replica.start()
    with closing(open_redis(replica.url, make=False)) as restarted:
        assert count(restarted, rows(30, 1)) == 0


def replace(server: RedisServer, other: RedisServer) -> None:
    """Demote, synchronize and promote a server: its connections live on, and so does its run id."""
    other.follow(server)
    other.promote()
    other.ask("SET", "another", "history")  # so that the two differ
    server.ask("SET", "one", "history")
    hold_rewrites(server)
    server.follow(other)
    server.ask("CONFIG", "RESETSTAT")
    server.promote()
    assert server.rewriting


@with_the_error
def test_a_server_that_was_replaced_between_two_looks_acknowledges_nothing(
    pair: tuple[RedisServer, RedisServer], monkeypatch: pytest.MonkeyPatch, *, planted: bool
) -> None:
    """Planted: the server's identity is not compared."""
    if planted:
        monkeypatch.setattr(DurabilityMonitor, "is_examined", lambda _, __, ___: True)
    server, other = pair
    with closing(open_redis(server.url, make=True)) as store:
        count(store, rows(30, 1))
        replace(server, other)
        if planted:
            assert count(store, rows(30, 2)) == 30
        else:
            with pytest.raises(StoreError):
                count(store, rows(30, 2))
            assert store.durability().blocking is not None


def test_a_server_that_was_started_again_is_not_complete_while_it_rewrites(
    pair: tuple[RedisServer, RedisServer],
) -> None:
    """Nobody knows what this process had read before its rewrite began."""
    server, _ = pair
    with closing(open_redis(server.url, make=True)) as store:
        count(store, rows(30, 1))
        server.kill()
        server.start()
        hold_rewrites(server)
        server.ask("BGREWRITEAOF")

        assert not is_taken(store)
        assert "not complete" in store.durability().why
        finish_rewrites(server)
        wait_until(lambda: is_taken(store))


def synchronize_anew(master: RedisServer, replica: RedisServer) -> None:
    """Have a replica leave, and copy all of its master's data into a rewrite that is held."""
    replica.promote()
    replica.ask("SET", "another", "history")
    wait_until(lambda: master.replicas() == 0)
    master.ask("SET", "one", "history")  # so that it cannot go on where it was
    hold_rewrites(replica)
    replica.follow(master)
    assert replica.rewriting
    assert master.confirms()  # by its word alone


@with_the_error
def test_a_replica_in_its_first_rewrite_confirms_nothing(
    pair: tuple[RedisServer, RedisServer], monkeypatch: pytest.MonkeyPatch, *, planted: bool
) -> None:
    """Planted: what it says is believed."""
    if planted:
        monkeypatch.setattr(DurabilityMonitor, "_is_replica_complete", lambda _, __, ___: True)
    master, replica = pair
    replica.follow(master)
    wait_until(lambda: not replica.rewriting)
    with closing(open_redis(f"{master.url}?replicas=1", make=True)) as store:
        count(store, rows(30, 1))
        synchronize_anew(master, replica)
        if planted:
            assert count(store, rows(30, 2)) == 30
            return
        with pytest.raises((StoreUnfit, StoreUnavailable)):
            count(store, rows(30, 2))
        finish_rewrites(replica)
        wait_until(lambda: is_taken(store))
