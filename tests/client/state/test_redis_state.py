"""A state in Redis: lost replies, a server without memory or rights, and one that would forget."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from veilcount_client.state import DrawOutcome, OutboxLimits, StateError
from veilcount_client.state import redis as redis_state
from veilcount_client.state.factory import open_state
from veilcount_client.state.losses import Loss
from veilcount_client.state.redis import RedisState

from ...processes import HOST, free_port
from ...proxy import LosingProxy
from ...redis_server import RedisServer
from .conftest import Engine
from .state_fixtures import (
    ANN,
    BEN,
    NOW,
    OTHER,
    SERIES,
    agree,
    draw,
    held,
    lease_all,
    lease_numbers,
    spent,
    statuses,
    withdraw,
    yes,
)


@pytest.fixture
def frail_state(frail: RedisServer) -> Iterator[RedisState]:
    """A state on a server for one test alone."""
    state = RedisState(frail.url)
    agree(state)
    yield state
    state.close()


def test_a_redis_without_memory_takes_no_more(frail: RedisServer, frail_state: RedisState) -> None:
    """What it has is settled, dropped and wiped all the same."""
    state = frail_state
    state.commit([draw(0), draw(1)])
    frail.ask("CONFIG", "SET", "maxmemory", "1")
    with pytest.raises(StateError, match="maxmemory"):
        state.commit([draw(2)])
    with pytest.raises(StateError):
        state.person(BEN)
    first, second = lease_numbers(state)
    state.settle([first], {second: Loss.FULL})
    state.reschedule({second: NOW})
    state.expire(NOW, OutboxLimits())
    withdraw(state)

    assert statuses(state) == ["delivered", "full"]
    assert spent(state) == 2
    assert state.used(ANN, SERIES) == (1, 1)
    state.forget(ANN)
    assert statuses(state) == []

    frail.ask("CONFIG", "SET", "maxmemory", "0")
    agree(state)
    assert state.commit([draw(2, coverage=1)]) == [DrawOutcome.STORED]


@pytest.fixture
def proxy(server: RedisServer) -> Iterator[LosingProxy]:
    """A proxy that loses replies on demand."""
    proxy = LosingProxy(server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def proxied(proxy: LosingProxy, redis: Engine) -> Iterator[RedisState]:
    """A state behind the proxy."""
    state = RedisState(f"{proxy.url}#{redis.location.partition('#')[2]}")
    for script in state._scripts.values():  # or the reply that is lost says only: no such script
        state._redis.script_load(script.script)
    agree(state)
    yield state
    state.close()


def test_a_lost_reply_does_nothing_twice(proxy: LosingProxy, proxied: RedisState) -> None:
    """The outcomes are those of what was done, also for a slot that is frozen and for events."""
    proxy.lose = 1
    outcomes = proxied.commit([*(draw(period) for period in (0, 1, 2, 2)), draw(free=True)])
    first, second, third, event = lease_numbers(proxied)
    proxied.settle([event], {})
    steps: list[Callable[[], object]] = [
        lambda: proxied.lose({(Loss.AGED, "a"): 1}),
        lambda: proxied.reschedule({first: NOW}),
        lambda: proxied.hold(None, held("a")),
        lambda: proxied.settle([second], {third: Loss.FULL}),
        lambda: proxied.expire(NOW, OutboxLimits()),
        lambda: proxied.consent(BEN, yes(OTHER)),
    ]
    for step in steps:
        proxy.lose = 1
        step()

    assert outcomes == ["stored", "stored", "stored", "frozen", "stored"]
    assert spent(proxied) == 3
    assert proxy.lost == 1 + len(steps)
    assert proxied.losses() == {(Loss.AGED, "a"): 1, (Loss.FULL, SERIES): 1}
    assert [each.tries for each in lease_all(proxied)] == [2]
    assert statuses(proxied) == ["waiting", "delivered", "full", "delivered"]

    proxy.lose = 2
    with pytest.raises(StateError):  # which may be done
        proxied.commit([draw(3)])
    assert proxied.commit([draw(3)]) == [DrawOutcome.FROZEN]
    assert spent(proxied) == len(proxied.sent(ANN)) - 1 == 4

    proxy.lose = 1
    proxied.forget(ANN)
    assert proxied.sent(ANN) == []


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h",
        "redis://h:port",
        "redis://h#a b",
        "redis://h#{x}",
        f"redis://{HOST}:{free_port()}",
    ],
    ids=["unknown scheme", "no port", "a space", "a brace", "nobody listens"],
)
def test_a_location_that_cannot_be_opened_is_an_error(url: str) -> None:
    with pytest.raises(StateError):
        open_state(url)


def test_a_silent_server_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_state, "TIMEOUT", 0.1)
    with socket.create_server((HOST, 0)) as silent, pytest.raises(StateError):
        open_state(f"redis://{HOST}:{silent.getsockname()[1]}/0")


def test_a_redis_that_would_forget_is_refused_and_one_that_may_lose_is_warned_of(
    frail: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """With what to set. The warning comes once, also where nothing can be checked."""
    forgetful = ("maxmemory-policy", "volatile-lru", "noeviction"), ("appendonly", "no", "yes")
    for name, wrong, right in forgetful:
        frail.ask("CONFIG", "SET", name, wrong)
        with pytest.raises(StateError, match=f"set {name} {right}"):
            RedisState(frail.url)
        frail.ask("CONFIG", "SET", name, right)
    assert not caplog.records

    for command, advice in (
        (("CONFIG", "SET", "appendfsync", "everysec"), "appendfsync always"),
        (("ACL", "SETUSER", "default", "-config"), "appendonly yes"),
    ):
        frail.ask(*command)
        with closing(RedisState(frail.url)) as state:
            agree(state)
            assert state.commit([draw(free=True)]) == [DrawOutcome.STORED]
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert advice in caplog.text
        caplog.clear()


def test_an_emptied_redis_begins_anew(frail: RedisServer, frail_state: RedisState) -> None:
    """Each opening learns it with one error; it is counted once."""
    other = RedisState(frail.url)
    root = frail_state.root
    frail.ask("FLUSHALL")
    for state in (frail_state, other):
        with pytest.raises(StateError):
            state.commit([draw()])

    assert frail_state.root == other.root != root
    assert frail_state.losses() == {(Loss.CORRUPT, ""): 1}
    assert frail_state.person(ANN).consented is None
    other.close()


def test_a_person_costs_little(frail: RedisServer, frail_state: RedisState) -> None:
    """With one collection: the person and the ledger, under 128 bytes; less than 200 with a report.

    At the hundred thousand persons that this stands for, a bucket has 24 of them.
    """
    keys = [bytes([0, at // 24 * 16]) + at.to_bytes(14, "big") for at in range(24 * 16)]
    withdraw(frail_state)
    agree(frail_state, *keys)
    frail_state.commit([draw(person=key) for key in keys])
    bare = _bytes(frail, "person") + _bytes(frail, "ledger")
    frail_state.settle(lease_numbers(frail_state), {})

    assert bare / len(keys) < 128
    assert (bare + _bytes(frail, "past")) / len(keys) < 200


def _bytes(server: RedisServer, kind: str) -> int:
    keys: Any = server.ask("KEYS", f"veilcount:*:{kind}:*")
    return sum(int(str(server.ask("MEMORY", "USAGE", key))) for key in keys)
