"""Nothing is acknowledged that is not durable: settings that change at runtime, and rewrites."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest

from veilcount_aggregator.errors import StoreUnavailable, StoreUnfit
from veilcount_aggregator.store import DurabilityState, Record
from veilcount_aggregator.store.redis.config_check import NodeConfig
from veilcount_aggregator.store.redis.connections import RedisNode, Wait
from veilcount_aggregator.store.redis.durability import DurabilityMonitor
from veilcount_aggregator.store.redis.durable_writes import WAIT_MILLISECONDS, DurableWriter
from veilcount_aggregator.store.redis.shard_client import Command, ShardClient
from veilcount_aggregator.store.redis.store import RedisStore, open_redis
from veilcount_aggregator.store.redis.url import RedisUrl

from ....redis_server import RedisServer
from ....system.server import wait_until
from ..series_fixtures import LINKED
from .simulated_rows import count, rows


@pytest.fixture(autouse=True)
def mended(running: RedisServer) -> Iterator[None]:
    yield
    for name, right in (("appendfsync", "always"), ("appendonly", "yes")):
        running.ask("CONFIG", "SET", name, right)
    running.ask("CONFIG", "SET", "rdb-key-save-delay", "0")
    wait_until(lambda: not running.rewriting)


def test_records_are_not_changed_and_rows_not_closed_where_that_is_not_durable(
    server: RedisServer, store: RedisStore
) -> None:
    count(store, rows(1, 1))
    server.ask("CONFIG", "SET", "appendfsync", "no")

    assert store.durability().blocking is not None
    with pytest.raises(StoreUnfit, match="appendfsync no"):
        store.change_records(0, [Record("kind", "key", b"value")])
    with pytest.raises(StoreUnfit, match="appendfsync no"):
        store.close_row(LINKED, [0], rows(1, 1)[0].tobytes())
    with pytest.raises(StoreUnfit, match="appendfsync no"):
        store.import_pieces([])


def _slow_rewrites(server: RedisServer) -> None:
    """Have a rewrite take a second and more: 1,000 keys of 1.5 ms."""
    with server.connection() as connection:
        connection.mset({f"filler:{number}": "" for number in range(1_000)})
    server.ask("CONFIG", "SET", "rdb-key-save-delay", "1500")


@pytest.mark.full
def test_an_append_only_file_that_was_turned_on_is_waited_for(
    server: RedisServer, store: RedisStore
) -> None:
    """Until its first rewrite has ended, a kill takes everything: Redis says `yes` before that."""
    _slow_rewrites(server)
    server.ask("CONFIG", "SET", "appendonly", "no")
    server.ask("CONFIG", "SET", "appendonly", "yes")  # nobody looked in between
    found = store.durability()
    opened = open_redis(server.url, make=True)  # started meanwhile: not refused, but waiting

    assert server.rewriting
    assert found.blocking is not None
    assert "not complete" in found.why
    for each in (store, opened):
        with pytest.raises(StoreUnfit, match="not complete"):
            count(each, rows(10, 1))
    wait_until(lambda: not server.rewriting)
    time.sleep(0.6)  # one look in half a second
    assert count(opened, rows(10, 1)) == 10
    assert count(store, rows(10, 1)) == 0
    opened.close()


def test_any_other_rewrite_keeps_nobody_waiting(server: RedisServer, store: RedisStore) -> None:
    _slow_rewrites(server)
    store.durability()
    server.ask("BGREWRITEAOF")
    found = store.durability()

    assert server.rewriting
    assert found.durable is DurabilityState.YES
    assert count(store, rows(10, 1)) == 10


def test_where_config_is_forbidden_no_settings_are_read_after_a_write(server: RedisServer) -> None:
    server.ask("ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "-config")
    url = server.url.replace("//", "//app:secret@")
    store = open_redis(url, make=True)

    assert store.durability().durable is DurabilityState.UNKNOWN
    assert "appendfsync always" in store.health().why
    assert count(store, rows(10, 1)) == 10
    store.close()
    server.ask("ACL", "DELUSER", "app")


class Recorder(ShardClient):
    """A shard client whose servers answer as a Redis 7.2 would: here is none."""

    def __init__(self, address: RedisUrl, servers: dict[bytes, str], confirms: object) -> None:
        super().__init__(address)
        self.servers = servers
        self.confirms = confirms
        self.commands: list[Command] = []

    def owner(self, base: bytes) -> RedisNode:
        return RedisNode.at((self.servers[base], 6379), self.address)

    def execute_once(self, commands: Sequence[Command], wait: Wait) -> list[object]:
        self.commands += commands
        answers = {"WAIT": 1, "WAITAOF": self.confirms}
        return [answers.get(str(command.words[0]), b"OK") for command in commands]


@pytest.mark.parametrize("servers", [{b"a": "one", b"b": "other"}, {b"a": "one", b"b": "one"}])
@pytest.mark.parametrize("confirms", [[1, 1], [0, 1], [1, 0], [0, 0]])
def test_from_redis_7_2_on_disks_are_waited_for(
    confirms: list[int], servers: dict[bytes, str]
) -> None:
    """Of the master and of so many replicas, once behind all of each server's writes."""
    client = Recorder(RedisUrl((("db", 6379),), replicas=1), servers, confirms)
    monitor = DurabilityMonitor(client)
    monitor.has_waitaof = True
    writer = DurableWriter(client, monitor, None)  # type: ignore[arg-type] # no height is kept
    answers = writer.execute_each([Command(b"a", ("SET",)), Command(b"b", ("SET",))])
    if confirms == [1, 1]:
        assert answers == [b"OK"] * 2
    else:
        assert all(isinstance(answer, StoreUnavailable) for answer in answers)
        assert all("of 1 replicas" in str(answer) for answer in answers)

    apart = len(set(servers.values())) == 2
    waits = ["WAIT", "WAITAOF"]
    names = ["SET", *waits, "SET", *waits] if apart else ["SET", "SET", *waits]
    assert [command.words[0] for command in client.commands] == names
    memory, disks = client.commands[-2:]
    assert (memory.words[:-1], disks.words[:-1]) == (("WAIT", 1), ("WAITAOF", 1, 1))
    assert (memory.confirms, disks.confirms) == (True, True)
    assert int(memory.words[-1]) + int(disks.words[-1]) == WAIT_MILLISECONDS
    assert [command.base for command in client.commands] == [b"a", *[b"a"] * 2 * apart, *[b"b"] * 3]


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"redis_version": "7.0.15"}, False),
        ({"redis_version": "7.2.4"}, True),
        ({"redis_version": "8.0"}, True),
        ({"redis_version": "7.0.0", "valkey_version": "9.1.2"}, True),
        ({}, False),
    ],
)
def test_redis_has_waitaof_from_7_2_on_and_every_valkey(
    info: dict[str, str], *, expected: bool
) -> None:
    server = RedisNode.at(("db", 6379), RedisUrl((("db", 6379),)))

    assert NodeConfig(server, info, None).has_waitaof is expected
