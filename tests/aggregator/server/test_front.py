"""A front's connections on bytes, without a socket; on a real server: security/test_front.py."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from veilcount_serving.front_connection import (
    MOST_WAITING,
    READ_BYTES,
    FrontConnection,
    PlainRequest,
)
from veilcount_serving.plain_head import MOST_BODY, MOST_FIELDS, PlainHead, parse_plain

START = b"POST /x HTTP/1.1\r\n"
PAGE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.reads, self.closed = b"", True, False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    @property
    def bodies(self) -> list[bytes]:
        return [part.partition(b"\r\n\r\n")[2] for part in self.written.split(b"HTTP/1.1 ")[1:]]


@dataclass(eq=False)
class Front:
    """Takes requests and answers none; keeps what is passed on."""

    start: bytes = START
    date: str = "now"
    is_open: bool = True
    time: float = 0.0
    taken: list[PlainRequest] = field(default_factory=list)
    passed: list[tuple[bytes, bool]] = field(default_factory=list)
    connections: set[FrontConnection] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.transport, self.connection = Transport(), FrontConnection(self)
        self.connection.connection_made(self.transport)

    def head(self, raw: bytes) -> PlainHead | None:
        return parse_plain(raw, self.start)

    def take(self, request: PlainRequest) -> bool:
        if self.is_open:
            self.taken.append(request)
        return self.is_open

    def incomplete(self, request: PlainRequest) -> None:
        request.answer(408, [], b"late")

    def pass_on(self, _: asyncio.Transport, data: bytes, *, is_over: bool) -> None:
        self.passed.append((data, is_over))

    def now(self) -> float:
        return self.time

    def receive(self, *pieces: bytes) -> Front:
        for piece in pieces:
            for begin in range(0, len(piece), READ_BYTES):
                part = piece[begin : begin + READ_BYTES]
                self.connection.get_buffer(-1)[: len(part)] = part
                self.connection.buffer_updated(len(part))
        return self


def post(body: bytes, *lines: bytes) -> bytes:
    fields = [b"Host: x", b"Content-Length: %d" % len(body), *lines]
    return START + b"".join(line + b"\r\n" for line in fields) + b"\r\n" + body


async def turns() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_a_request_is_taken_whole_in_whatever_pieces_it_comes() -> None:
    raw = post(b"body")
    for size in range(1, len(raw) + 1):
        front = Front().receive(*(raw[at : at + size] for at in range(0, len(raw), size)))

        assert [request.body for request in front.taken] == [b"body"]
        assert front.passed == []


@pytest.mark.parametrize(
    "raw",
    [
        PAGE,
        post(b"body", b"Transfer-Encoding: chunked"),
        post(b"body", b"Content-Length: 4"),
        post(b"body", b"Host: y"),
        post(b"body", b"Connection: keep-alive, x"),
        post(b"body", b"A: b", b" c"),
        post(b"body", b"A:b"),
        post(b"body", b"A: b "),
        post(b"body", b"A: \xff"),
        post(b"body").replace(b"\r\n", b"\n"),
        post(b"body").replace(b"HTTP/1.1", b"HTTP/1.0"),
        post(b"body").replace(b"Host: x\r\n", b""),
        post(b"body").replace(b"Length: 4", b"Length: 04"),
        post(b""),
        post(bytes(MOST_BODY + 1)),
        b"\r\n" + post(b"body"),
        START + b"A: " + b"a" * 9000,
        post(b"body", b"A: " + b"a" * 9000),
        post(b"body", *(b"A%d: b" % number for number in range(MOST_FIELDS))),
    ],
)
def test_all_else_is_passed_on_as_it_came(raw: bytes) -> None:
    """In one piece it goes on whole; byte by byte, as soon as it shows."""
    whole, drip = Front().receive(raw), Front()
    for place in range(len(raw)):
        if not drip.passed:
            drip.receive(raw[place : place + 1])

    assert whole.passed == [(raw, False)]
    assert raw.startswith(drip.passed[0][0])
    assert (whole.taken, drip.taken, whole.transport.written) == ([], [], b"")


def test_what_is_pipelined_waits_for_the_answer_before_it() -> None:
    async def run() -> None:
        front = Front().receive(post(b"one") + post(b"two") + PAGE)
        assert len(front.taken) == 1
        front.taken[0].answer(200, [("A", "b")], b"1")
        await turns()
        assert [request.body for request in front.taken] == [b"one", b"two"]
        assert front.passed == []
        front.taken[1].answer(200, [], b"2")
        await turns()

        assert front.passed == [(PAGE, False)]
        assert front.transport.bodies == [b"1", b"2"]

    asyncio.run(run())


def test_a_late_outcome_does_not_answer_the_next_request() -> None:
    front = Front().receive(post(b"one"))
    front.taken[0].answer(503, [], b"hangs")
    front.receive(post(b"two"))
    front.taken[0].answer(200, [], b"late")
    assert (front.taken[0].is_answered, front.taken[1].is_answered) == (True, False)
    front.taken[1].answer(200, [], b"2")

    assert front.transport.bodies == [b"hangs", b"2"]


def test_a_request_that_is_not_taken_is_passed_on_with_its_body() -> None:
    front = Front(is_open=False).receive(post(b"body") + PAGE)

    assert front.passed == [(post(b"body") + PAGE, False)]


def test_an_end_of_sending_closes_only_after_the_answer() -> None:
    front = Front().receive(post(b"body"))
    assert front.connection.eof_received()
    front.taken[0].answer(200, [], b"1")

    assert (front.transport.bodies, front.transport.closed) == ([b"1"], True)
    assert not Front().connection.eof_received()


@pytest.mark.parametrize("value", [b"close", b"Close"])
def test_a_connection_is_closed_after_its_last_request(value: bytes) -> None:
    front = Front().receive(post(b"body", b"Connection: " + value))
    front.taken[0].answer(200, [], b"1")

    assert front.transport.closed


def test_what_is_not_read_is_not_written_without_end() -> None:
    """Whoever sends and does not read: nothing is taken until it reads, and little is buffered."""

    async def run() -> None:
        front = Front().receive(post(b"one") * 2)
        front.connection.pause_writing()
        front.taken[0].answer(200, [], b"1")
        await turns()
        assert len(front.taken) == 1
        front.receive(bytes(MOST_WAITING))
        assert not front.transport.reads
        front.connection.resume_writing()

        assert len(front.taken) == 2

    asyncio.run(run())


def test_what_does_not_come_in_time_is_ended() -> None:
    """A body with an answer, a head and an idle connection without; what waits is left alone."""
    body, head, idle, waits = (Front() for _ in range(4))
    body.receive(post(b"body")[:-1])
    head.receive(START)
    waits.receive(post(b"body"))
    for front in (body, head, idle, waits):
        front.connection.end_overdue(-1.0)
        assert not front.transport.closed
        front.connection.end_overdue(1.0)

    assert [front.transport.closed for front in (body, head, idle, waits)] == [
        *(True, True, True),
        False,
    ]
    assert body.transport.bodies == [b"late"]
    assert head.transport.written == idle.transport.written == b""


def test_a_connection_is_passed_on_once() -> None:
    """Also where the rest of a head comes just after the answer to the request before it."""

    async def act() -> None:
        front = Front().receive(post(b"one") + PAGE[:12])
        front.taken[0].answer(200, [], b"first")
        front.receive(PAGE[12:])
        await turns()

        assert front.passed == [(PAGE, False)]

    asyncio.run(act())


def test_what_had_come_before_the_end_is_answered() -> None:
    """Also where the end comes between an answer and the next request."""

    async def act() -> None:
        front = Front().receive(post(b"one") + post(b"two") + post(b"three"))
        front.taken[0].answer(200, [], b"first")
        assert front.connection.eof_received()
        for number in (1, 2):
            await turns()
            front.taken[number].answer(200, [], b"next")

        assert front.transport.bodies == [b"first", b"next", b"next"]
        assert front.transport.closed

    asyncio.run(act())


def test_a_request_waits_for_its_group_from_when_it_has_come_as_a_whole() -> None:
    """A slow body takes nothing of the time that the store has."""
    front, raw = Front(), post(b"body")
    front.receive(raw[:-1])
    front.time = 9.0
    front.receive(raw[-1:])

    assert front.taken[0].begun == 9.0
