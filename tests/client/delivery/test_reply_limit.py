"""A server that sends without end is cut off by what it sent, long before the deadline.

Real sockets. What has no limit in `http.client` and urllib3 is sent as fast as the loopback goes;
each is shown to hold an exchange for its whole time where nothing counts the bytes.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

import pytest

from veilcount_client.delivery import reply_limit, transport
from veilcount_client.delivery.transport import Delivered, HttpTransport, Later, Outcome

from .server_fixtures import HOST
from .test_deadline import BODY, INTERIM, OK, listening

AMPLE = 30.0  # seconds: an exchange as it is by default
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


def flooding(first: bytes, again: bytes) -> Callable[[socket.socket, threading.Event], None]:
    """Return a peer that answers, and then sends the same without end."""

    def behave(connection: socket.socket, stopped: threading.Event) -> None:
        connection.recv(1 << 16)
        connection.sendall(first)
        while not stopped.is_set():
            connection.sendall(again)

    return behave


def exchange(flood: str) -> tuple[Outcome, float, float]:
    """Return what came of sending to a flood: the outcome, how long, and CPU of the sender."""
    found: list[tuple[Outcome, float, float]] = []

    def send() -> None:
        begun, used = time.monotonic(), time.thread_time()
        outcome = HttpTransport(f"http://{place}", None, time.time).send(BODY, 1)
        found.append((outcome, time.monotonic() - begun, time.thread_time() - used))

    with listening(flooding(*FLOODS[flood])) as place:
        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        thread.join(2 * AMPLE)
    return found[0]


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", HOST)
    monkeypatch.setattr(transport, "MAX_SECONDS", AMPLE)


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_ends_by_its_length(flood: str) -> None:
    """In a small part of the time, and of the CPU time, that the deadline would leave it."""
    outcome, seconds, computed = exchange(flood)

    assert isinstance(outcome, Later)
    assert outcome.why != "TimeoutError"
    assert outcome.seen
    assert seconds < AMPLE / 2
    assert computed < AMPLE / 10


@pytest.mark.full
@pytest.mark.parametrize("flood", [*FLOODS][:1])
def test_a_deadline_alone_lets_a_flood_take_all_its_time(
    flood: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted variant: nothing is counted, and the sender computes until the deadline."""
    monkeypatch.setattr(reply_limit.ReadBudget, "spend", lambda *_: None)
    monkeypatch.setattr(transport, "MAX_SECONDS", 1.0)
    outcome, seconds, computed = exchange(flood)

    assert outcome == Later("TimeoutError")
    assert seconds > 1.0
    assert computed > 0.05


def test_a_drip_takes_hardly_any_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that come one by one until the deadline: most of that time the sender sleeps."""
    monkeypatch.setattr(transport, "MAX_SECONDS", 1.0)
    monkeypatch.setitem(FLOODS, "drip", (CHUNKED, b"0"))
    monkeypatch.setattr(threading.Event, "is_set", lambda self: self.wait(0.02))
    outcome, seconds, computed = exchange("drip")

    assert outcome == Later("TimeoutError")
    assert computed < seconds / 4


def test_the_longest_honest_reply_is_far_below_the_limit() -> None:
    """A verdict for each of as many reports as a body has, in chunks of one byte."""
    text = b'{"verdicts":[' + b",".join([b'"unknown_collection"'] * 1_000) + b"]}"
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in text) + b"0\r\n\r\n"

    def behave(connection: socket.socket, stopped: threading.Event) -> None:
        connection.recv(1 << 16)
        connection.sendall(CHUNKED + chunks)
        stopped.wait()

    with listening(behave) as place:
        outcome = HttpTransport(f"http://{place}", None, time.time).send(BODY, 1_000)

    assert isinstance(outcome, Delivered)
    assert len(outcome.verdicts) == 1_000
    assert len(CHUNKED + chunks) < reply_limit.MAX_READ / 1.5
