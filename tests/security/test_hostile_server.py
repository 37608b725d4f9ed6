"""A server that means ill, against the whole client: it costs an answer's time, and no answer."""

from __future__ import annotations

import gzip
import json
import random
import socket
import struct
import tracemalloc
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from veilcount_client.delivery import backoff, transport
from veilcount_client.delivery.transport import Delivered, HttpTransport, Later, Outcome, Rejected
from veilcount_client.testing import SettableClock
from veilcount_shared.report import Batch, Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import encode_binary

from ..client.delivery import server_fixtures
from ..client.delivery.app_client import PER_DAY, START, consenting
from ..client.delivery.server_fixtures import Behaviour, Request, Server, serving

NOW = datetime.fromtimestamp(START, UTC)
REPORT = Report("0" * 64, 0, 0, bytes(16), 0, b"\x01")
BODY = encode_binary(Batch((REPORT,)))
ONCE = gzip.compress(b'{"verdicts":["counted"]}', mtime=0)
OK = b"HTTP/1.1 200 OK\r\n"
TWICE = gzip.compress(ONCE, mtime=0)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request takes two seconds at most, and no proxy stands before the loopback."""
    monkeypatch.setattr(transport, "TIMEOUT", (1.0, 1.0))
    monkeypatch.setattr(transport, "MAX_SECONDS", 2.0)
    monkeypatch.setenv("NO_PROXY", server_fixtures.HOST)


def outcome(behaviour: Behaviour) -> Outcome:
    with serving(behaviour) as server:
        return HttpTransport(server.url, None, lambda: START).send(BODY, 1)


def resetting(server: Server, connection: socket.socket, request: Request) -> None:
    """Count, begin to answer, and tear the connection down as a crash does."""
    for report in request.batch().reports:
        server.count(report)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Len")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def json_reply(value: object, **headers: str) -> Behaviour:
    return server_fixtures.answering(200, json.dumps(value).encode(), **headers)


def packed(layers: int, size: int, coding: str = "gzip") -> Behaviour:
    """Return what answers with so many zeros, packed so many times."""
    body = bytes(size)
    for _ in range(layers):
        body = gzip.compress(body, mtime=0)
    return server_fixtures.answering(200, body, Content_Encoding=", ".join([coding] * layers))


# -- replies that are none -------------------------------------------------------------------------


WRONG = (
    *(json_reply({"verdicts": [each]}) for each in (float("nan"), -1, 10**400, None, ["counted"])),
    *map(json_reply, ({"verdicts": {"0": "counted"}}, {"verdicts": "counted"}, ["counted"])),
    json_reply({"verdicts": ["counted"] * 1_000}),
    server_fixtures.answering(200, b'{"verdicts":["counted"],"verdicts":["counted"]}'),
    server_fixtures.answering(200, b'{"verdicts":["counted"]}' * 2),
    server_fixtures.answering(200, b'\xef\xbb\xbf{"verdicts":["counted"]}'),
    server_fixtures.answering(200, b"9" * 60_000),
    server_fixtures.answering(200, TWICE, Content_Encoding="gzip, gzip"),
    packed(3, 1_000),
    packed(1, 1_000, "br"),
    resetting,
    server_fixtures.responding(OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffff\r\nx"),
    server_fixtures.responding(OK + b"Content-Length: -1\r\n\r\n"),
    server_fixtures.responding(OK + b"Content-Length: 1\r\nContent-Length: 9\r\n\r\n{"),
    server_fixtures.responding(b"HTTP/1.1 999 Whatever\r\n\r\n"),
    server_fixtures.responding(b"HTTP/1.1 100 Continue\r\n\r\n" * 90),
    server_fixtures.responding(b"HTTP/9.9 200 OK\r\n\r\n"),
    server_fixtures.responding(b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n"),
)


@pytest.mark.parametrize("behaviour", WRONG)
def test_no_reply_but_a_right_one_settles_a_report(behaviour: Behaviour) -> None:
    """Numbers that are none, words of no version, two meanings, packed bombs: it goes again."""
    assert isinstance(outcome(behaviour), Later)


def test_a_reply_that_a_proxy_packed_is_read() -> None:
    behaviour = server_fixtures.answering(200, ONCE, Content_Encoding="gzip")

    assert outcome(behaviour) == Delivered((Verdict.COUNTED,))


WAITS = (
    *("1e308", "1e309", "-1e309", "0x7fffffff", "1_000", "١٢", "9" * 4_000, "\x00"),
    *("Sun, 31 Dec 99999 23:59:59 GMT", ", ".join(["60"] * 99)),
)


def test_no_header_makes_a_device_wait_longer_than_an_hour_or_by_a_time_of_its_own() -> None:
    """A server that draws a delay for each request must not know the request by it."""
    drawn = [f"{seconds}" for seconds in range(0, 5_000, 7)]
    dates = [format_datetime(NOW + timedelta(seconds=int(each)), usegmt=True) for each in drawn]
    public = {0, 60, 300, 900, backoff.LONGEST_RETRY_DELAY}

    assert backoff.LONGEST_RETRY_DELAY == 3_600
    assert {backoff.retry_after(each, START) for each in drawn} == public
    assert {backoff.retry_after(each, START) for each in dates} == public
    assert {backoff.retry_after(each, START) for each in WAITS} <= public


MOST_BYTES = 2 << 20  # of the answer that is read; of a bomb nothing more


def flooding(head: bytes) -> Behaviour:
    """Return what begins a reply, and goes on for 100 MB."""

    def behave(server: Server, connection: socket.socket, request: Request) -> None:
        connection.sendall(b"HTTP/1.1 " + head + b"\r\nContent-Length: 104857600\r\n\r\n")
        for _ in range(100):
            connection.sendall(server_fixtures.BLOCK)

    return behave


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (flooding(b"200 OK\r\nContent-Type: application/json"), Later),
        (flooding(b"400 Bad Request\r\nContent-Type: application/problem+json"), Rejected),
        (packed(1, 16 << 20), Later),
        (packed(3, 16 << 20), Later),
    ],
    ids=["a reply", "a problem", "a bomb", "bombs in a bomb"],
)
def test_a_long_reply_takes_no_memory(behaviour: Behaviour, kind: type[Outcome]) -> None:
    with serving(behaviour) as server:
        sender = HttpTransport(server.url, None, lambda: START)
        tracemalloc.start()
        result = sender.send(BODY, 1)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert isinstance(result, kind)
    assert most < MOST_BYTES


HOSTILE: dict[str, Behaviour] = {
    "resets": resetting,
    "loses the reply": server_fixtures.dropping,
    "hangs up": server_fixtures.responding(b""),
    "is silent": server_fixtures.silent,
    "logs in": server_fixtures.answering(200, b"<html>please log in</html>"),
    "leads elsewhere": server_fixtures.answering(308, Location="http://127.0.0.1:9/v1/reports"),
    "asks for a year": server_fixtures.answering(429, Retry_After="31536000"),
    "fails": server_fixtures.answering(500),
    "counts too few": json_reply({"verdicts": []}),
    "counts too many": json_reply({"verdicts": ["counted"] * 999}),
    "counts in other words": json_reply({"verdicts": ["well received"]}),
    "sets a cookie": server_fixtures.answering(503, Set_Cookie="who=you; Path=/; Max-Age=99999999"),
    "asks for a name": server_fixtures.answering(401, WWW_Authenticate='Basic realm="who are you"'),
    "asks by NTLM": server_fixtures.answering(407, Proxy_Authenticate="NTLM"),
    "packs a bomb": packed(1, 1 << 20),
}


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(each, marks=pytest.mark.full) for each in (2, 3))]
)
def test_whatever_a_server_does_each_answer_counts_once(seed: int, tmp_path: Path) -> None:
    """Every request repeats the bytes before it; at the first right reply all is settled."""
    order = random.Random(seed).sample(list(HOSTILE.values()), len(HOSTILE))
    clock = SettableClock(NOW)
    with serving(server_fixtures.in_turn(*order, server_fixtures.counting)) as server:
        client = consenting(server.url, tmp_path, threaded=False, clock=clock)
        for _ in range(PER_DAY):
            client.record("event", True)
        for _ in range(2 * len(HOSTILE)):
            clock.advance(hours=25)
            if client.flush(timeout=60):
                break
        client.close()

        assert len(server.seen) == PER_DAY
        assert all(len(messages) == 1 for messages in server.seen.values())
        assert len(server.posts) > len(HOSTILE)
        assert len({request.body for request in server.posts}) == 1
        assert not any(
            request.header("cookie") or request.header("authorization")
            for request in server.requests
        )
