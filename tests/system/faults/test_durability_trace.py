"""An answer leaves when the disk has what it speaks of, and not before: seen at the system's calls.

Each test is made twice: on a store that promises durability, and on one that does not, which the
same test must refuse.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.redis_server import RedisServer
from tests.system.faults.campaign import Campaign
from tests.system.faults.tracing import Trace, parse, tracing
from tests.system.server import Server
from veilcount_aggregator.store import ROW_BYTES, open_store
from veilcount_aggregator.store.redis.store import RedisStore
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.report import Batch, Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE, decode_verdicts, encode_binary

SENT = 6
RELAXED = "?durability=relaxed"


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return Campaign.write(tmp_path)


@pytest.fixture
def sent(campaign: Campaign) -> list[Report]:
    randomness = SeededRandomSource(1)
    return [campaign.person(randomness)[0] for _ in range(SENT)]


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that syncs before it answers."""
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisServer(folder)
    yield server
    server.kill()


def post(server: Server, report: Report) -> None:
    body, kind = encode_binary(Batch((report,))), {"Content-Type": BINARY_TYPE}
    reply = server.ask("POST", "/v1/reports", data=body, headers=kind)

    assert decode_verdicts(reply.content, 1) == (Verdict.COUNTED,)


def traced(server: Server, sent: list[Report], folder: Path, *others: int) -> Trace:
    """Send one report after the other, and return what the worker and others did meanwhile."""
    post(server, sent[0])  # the connection is there, the file is open
    with tracing([*server.workers(), *others], folder) as trace:
        for report in sent[1:]:
            post(server, report)

    assert len(trace.replies()) == len(sent) - 1
    return trace


def durable(trace: Trace, held: list[bytes]) -> list[bool]:
    """Return of each report whether its reply waited for the disk."""
    return [trace.durable(row, reply) for row, reply in zip(held[1:], trace.replies(), strict=True)]


def rows(sent: list[Report]) -> list[bytes]:
    """Return under which bytes SQLite's files keep reports."""
    return [report.pseudonym[:ROW_BYTES] for report in sent]


def fields(url: str, sent: list[Report]) -> list[bytes]:
    """Return the same of a store in Redis, which keeps rows under names of its own."""
    with closing(open_store(url)) as store:
        assert isinstance(store, RedisStore)
        fields = np.frombuffer(b"".join(rows(sent)), np.uint8).reshape(-1, ROW_BYTES)
        return [field.tobytes() for field in store.identity.permutation.apply(fields).fields]


@pytest.mark.parametrize("durability", ["", RELAXED])
def test_with_sqlite_the_sync_ends_before_the_answer_begins(
    tmp_path: Path, campaign: Campaign, sent: list[Report], durability: str
) -> None:
    with campaign.serve(f"sqlite:///{tmp_path}/store.db{durability}") as server:
        trace = traced(server, sent, tmp_path)

    assert set(durable(trace, rows(sent))) == {durability != RELAXED}
    assert {trace.written(row).file for row in rows(sent)[1:]} == {f"{tmp_path}/store.db-wal"}


@pytest.mark.parametrize("durability", ["", RELAXED])
def test_with_redis_the_sync_ends_before_the_answer_begins(
    tmp_path: Path, campaign: Campaign, sent: list[Report], redis: RedisServer, durability: str
) -> None:
    """Of one that syncs every second, one reply may happen to be in time; most are not."""
    url = redis.url + durability
    redis.ask("CONFIG", "SET", "appendfsync", "everysec" if durability else "always")
    with campaign.serve(url) as server:
        trace = traced(server, sent, tmp_path, redis._process.pid)
    held = fields(url, sent)
    late = durable(trace, held).count(False)

    assert late > SENT // 2 if durability else late == 0
    assert {Path(trace.written(row).file).suffix for row in held[1:]} == {".aof"}


@pytest.mark.full
def test_a_redis_that_does_not_sync_during_a_rewrite_is_found_out(
    tmp_path: Path, campaign: Campaign, sent: list[Report], redis: RedisServer
) -> None:
    """With `appendfsync always` and `no-appendfsync-on-rewrite yes` not one reply waits."""
    redis.ask("CONFIG", "SET", "no-appendfsync-on-rewrite", "yes")
    url = redis.url + RELAXED
    with redis.connection() as connection:
        connection.mset({f"filler:{number}": "" for number in range(10_000)})
    with campaign.serve(url) as server:
        redis.ask("CONFIG", "SET", "rdb-key-save-delay", "10000")  # microseconds a key
        redis.ask("BGREWRITEAOF")
        trace = traced(server, sent, tmp_path, redis._process.pid)
        rewrote = redis.rewriting
    found = durable(trace, fields(url, sent))
    redis.ask("CONFIG", "SET", "appendonly", "no")  # ends the rewrite

    assert rewrote
    assert found == [False] * (SENT - 1)


def test_a_sync_that_ends_after_the_answer_began_is_none() -> None:
    """The reading of a trace itself, on the one order that a race would leave."""
    row, ok = _escaped(b"row"), _escaped(b"HTTP/1.1 200 OK")
    begun = [f'7 pwrite64(3</wal>, "{row}", 3, 0) = 3', "7 fdatasync(3</wal> <unfinished ...>"]
    ended, answer = "7 <... fdatasync resumed>) = 0", f'8 write(4<socket:[1]>, "{ok}", 15) = 15'
    right, wrong = Trace(parse([*begun, ended, answer])), Trace(parse([*begun, answer, ended]))

    assert right.durable(b"row", right.replies()[0])
    assert not wrong.durable(b"row", wrong.replies()[0])


def _escaped(data: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in data)
