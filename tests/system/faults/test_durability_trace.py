"""An answer leaves when the disk has what it speaks of, and not before: seen at the system's calls.

Each test is made twice: on a store that promises durability, and on one that does not, which the
same test must refuse.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from http import HTTPStatus
from pathlib import Path

import numpy as np
import pytest

from veilcount_aggregator.store import ROW_BYTES, open_store
from veilcount_aggregator.store.redis.store import RedisStore
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.report import Batch, Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE, decode_verdicts, encode_binary

from ...redis_server import RedisServer
from ..server import Server, slow_commits
from .campaign import Campaign
from .tracing import Call, Trace, parse, tracing

SENT = 6
ATTEMPTS = 50
VERDICT = f'"{Verdict.COUNTED}"'.encode()
RELAXED = "?durability=relaxed"


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return Campaign.write(tmp_path)


@pytest.fixture
def sent(campaign: Campaign) -> list[list[Report]]:
    """The reports of some requests: of one, of two and so on, by which their answers differ."""
    randomness = SeededRandomSource(1)
    return [campaign.person(randomness)[:number] for number in range(1, SENT + 1)]


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that syncs before it answers."""
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisServer(folder)
    yield server
    server.kill()


def post(server: Server, reports: list[Report]) -> None:
    """Have reports counted; a store that is too busy for now is sent them again."""
    body, kind = encode_binary(Batch(tuple(reports))), {"Content-Type": BINARY_TYPE}
    allowed = {Verdict.COUNTED}
    for _ in range(ATTEMPTS):
        reply = server.ask("POST", "/v1/reports", data=body, headers=kind)
        if reply.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
            break
        allowed.add(Verdict.DUPLICATE)  # it may have been counted after it was answered so
        time.sleep(0.1)

    assert {*decode_verdicts(reply.content, len(reports))} <= allowed


def traced(
    server: Server,
    sent: list[list[Report]],
    folder: Path,
    held: AbstractContextManager[None],
    *others: int,
) -> Trace:
    """Send requests at once while the store is held: the first is a group, all others the next.

    Return what the worker and others did meanwhile.
    """
    post(server, sent[0])  # the file is open
    with (
        tracing([*server.workers(), *others], folder) as trace,
        ThreadPoolExecutor(SENT) as devices,
    ):
        with held:
            posted = [devices.submit(post, server, reports) for reports in sent[1:]]
            time.sleep(0.5)
        for each in posted:
            each.result()

    assert len(trace.replies()) == len(sent) - 1
    return trace


def durable(trace: Trace, held: list[bytes]) -> list[bool]:
    """Return of each request, all of whose group was written as one, whether its reply waited for
    the disk.
    """
    writes = {write.began for write in writes_of(trace, held[1:])}
    replies = [trace.reply(VERDICT, number) for number in range(2, SENT + 1)]

    assert len(writes) < len(replies), "each was a group of its own"
    return [trace.durable(row, reply) for row, reply in zip(held[1:], replies, strict=True)]


def writes_of(trace: Trace, held: list[bytes]) -> list[Call]:
    """Return the writes of rows, without those that Redis had put off until the trace ended."""
    return [write for row in held if (write := trace.written(row)) is not None]


def rows(sent: list[list[Report]]) -> list[bytes]:
    """Return under which bytes SQLite's files keep the first report of each request."""
    return [reports[0].pseudonym[:ROW_BYTES] for reports in sent]


def fields(url: str, sent: list[list[Report]]) -> list[bytes]:
    """Return the same of a store in Redis, which keeps rows under names of its own."""
    with closing(open_store(url)) as store:
        assert isinstance(store, RedisStore)
        fields = np.frombuffer(b"".join(rows(sent)), np.uint8).reshape(-1, ROW_BYTES)
        return [field.tobytes() for field in store.identity.permutation.apply(fields).fields]


@pytest.mark.parametrize("durability", ["", RELAXED])
def test_with_sqlite_the_sync_ends_before_the_answer_begins(
    tmp_path: Path, campaign: Campaign, sent: list[list[Report]], durability: str
) -> None:
    with campaign.serve(f"sqlite:///{tmp_path}/store.db{durability}") as server:
        trace = traced(server, sent, tmp_path, slow_commits(tmp_path / "store.db"))

    assert set(durable(trace, rows(sent))) == {durability != RELAXED}
    assert {write.file for write in writes_of(trace, rows(sent)[1:])} == {
        f"{tmp_path}/store.db-wal"
    }


@pytest.mark.parametrize("durability", ["", RELAXED])
def test_with_redis_the_sync_ends_before_the_answer_begins(
    tmp_path: Path,
    campaign: Campaign,
    sent: list[list[Report]],
    redis: RedisServer,
    durability: str,
) -> None:
    """Planted: one that leaves the sync to the kernel, whose every answer comes before it."""
    url = redis.url + durability
    redis.ask("CONFIG", "SET", "appendfsync", "no" if durability else "always")
    with campaign.serve(url) as server:
        trace = traced(server, sent, tmp_path, redis.frozen(), redis._process.pid)
    held = fields(url, sent)
    found = durable(trace, held)

    assert found == [not durability] * len(sent[1:])
    assert {Path(write.file).suffix for write in writes_of(trace, held[1:])} <= {".aof"}


@pytest.mark.full
def test_a_redis_that_does_not_sync_during_a_rewrite_is_found_out(
    tmp_path: Path, campaign: Campaign, sent: list[list[Report]], redis: RedisServer
) -> None:
    """With `appendfsync always` and `no-appendfsync-on-rewrite yes` not one reply waits."""
    redis.ask("CONFIG", "SET", "no-appendfsync-on-rewrite", "yes")
    url = redis.url + RELAXED
    with redis.connection() as connection:
        connection.mset({f"filler:{number}": "" for number in range(10_000)})
    with campaign.serve(url) as server:
        redis.ask("CONFIG", "SET", "rdb-key-save-delay", "10000")  # microseconds a key
        redis.ask("BGREWRITEAOF")
        trace = traced(server, sent, tmp_path, redis.frozen(), redis._process.pid)
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
