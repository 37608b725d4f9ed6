"""A server that sends without end is cut off by what it sent, long before the deadline.

Real sockets. What has no limit in `http.client` and urllib3 is sent as fast as the loopback goes.
"""

from __future__ import annotations

import time
from functools import partial

import pytest

from veilcount_client.delivery import transport
from veilcount_client.delivery.deadline import MAX_READ, ReadBudget
from veilcount_client.delivery.transport import Delivered, HttpTransport, Later

from .server_fixtures import HOST
from .test_deadline import BODY, INTERIM, OK, dripping, listening, outcome, send_to

CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
FLOODS = {
    "interim responses": (b"", INTERIM * 1_000),
    "interim responses with headers": (
        b"", b"HTTP/1.1 100 Continue\r\n" + b"X-A: b\r\n" * 90 + b"\r\n",
    ),
    "a chunk's size": (CHUNKED, b"0" * 60_000),
    "a chunk's extension": (CHUNKED + b"1;", b"x" * 60_000),
    "chunks with extensions": (CHUNKED, b"1;" + b"x" * 20_000 + b"\r\n \r\n"),
    "trailers": (CHUNKED + b"0\r\n", b"X-Trailer: x\r\n" * 4_000),
}  # fmt: skip


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what an exchange reads. It has ten minutes, and no proxy."""
    monkeypatch.setenv("NO_PROXY", HOST)
    monkeypatch.setattr(transport, "MAX_SECONDS", 600.0)
    sizes: list[int] = []
    spend = ReadBudget.spend

    def count(budget: ReadBudget, size: int) -> None:
        sizes.append(size)
        spend(budget, size)

    monkeypatch.setattr(ReadBudget, "spend", count)
    return sizes


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_ends_by_its_length(flood: str, reads: list[int]) -> None:
    with listening(dripping(*FLOODS[flood], pause=0.0)) as address:
        result = outcome(partial(send_to, f"http://{address}"))

    assert isinstance(result, Later)
    assert result.seen
    assert sum(reads[:-1]) <= MAX_READ


def test_no_deadline_alone_ends_a_flood(reads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: nothing is limited, and the sender reads until the deadline."""
    monkeypatch.setattr(ReadBudget, "spend", lambda _, size: reads.append(size))
    monkeypatch.setattr(transport, "MAX_SECONDS", 3.0)
    with listening(dripping(*FLOODS["interim responses"], pause=0.0)) as address:
        assert outcome(partial(send_to, f"http://{address}")) == Later("TimeoutError")

    assert sum(reads) > MAX_READ


def test_the_sender_sleeps_between_drips(reads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads once a byte, and nothing in between."""
    monkeypatch.setattr(transport, "MAX_SECONDS", 1.0)
    with listening(dripping(CHUNKED, b"0")) as address:
        assert outcome(partial(send_to, f"http://{address}")) == Later("TimeoutError")

    assert len(reads) <= sum(reads) - len(CHUNKED) + 5


def test_the_longest_honest_reply_is_far_below_the_limit(reads: list[int]) -> None:
    """A verdict for each of as many reports as a body has, in chunks of one byte."""
    text = b'{"verdicts":[' + b",".join([b'"unknown_collection"'] * 1_000) + b"]}"
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in text) + b"0\r\n\r\n"
    with listening(dripping(CHUNKED + chunks, b"")) as address:
        result = HttpTransport(f"http://{address}", None, time.time).send(BODY, 1_000)

    assert isinstance(result, Delivered)
    assert len(result.verdicts) == 1_000
    assert sum(reads) < MAX_READ / 1.5
