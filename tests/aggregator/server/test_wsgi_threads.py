"""WSGI applications behind an event loop. On a real server: tests/security and tests/system."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest

from veilcount_aggregator.server.rsgi import RsgiApplication
from veilcount_aggregator.web.api.reports import PATH
from veilcount_serving import wsgi_threads
from veilcount_serving.structured_logging import FaultLog
from veilcount_serving.wsgi_threads import FIRST_BYTES, IN_MEMORY, WsgiThreads
from veilcount_shared.problem_details import PROBLEM_TYPE, TYPE_PREFIX

NEVER = None  # a piece of a body that does not come
SCOPE = SimpleNamespace(
    method="POST",
    path="/é",
    query_string="",
    scheme="http",
    http_version="1.1",
    authority=None,
    server="127.0.0.1:80",
    headers={"host": "veilcount.example:80", "content-type": "text/plain"},
)


@dataclass
class Protocol:
    """A request's body in pieces, and the response to it."""

    pieces: tuple[bytes | None, ...] = ()
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    async def __call__(self) -> bytes:
        return b"".join([piece async for piece in self])

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if piece is NEVER:
                await asyncio.sleep(3600)
            else:
                yield piece

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status, self.headers, self.body = status, dict(headers), body

    def response_stream(self, status: int, headers: list[tuple[str, str]]) -> Protocol:
        self.status, self.headers = status, dict(headers)
        return self

    async def send_bytes(self, piece: bytes) -> None:
        self.body += piece


def echo(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
    """Respond with what was sent, as far as it came."""
    received = b""
    try:
        while piece := environ["wsgi.input"].read(3):
            received += piece
    except OSError:
        start("408 Timeout", [])
    else:
        start("200 OK", [("X-Path", environ["PATH_INFO"]), ("X-Host", environ["SERVER_NAME"])])
    return [received]


def long(_: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
    start("200 OK", [("Content-Length", "a wrong one")])
    return [bytes(IN_MEMORY), b"end"]


def breaks(_: WSGIEnvironment, start: StartResponse) -> Iterator[bytes]:
    start("200 OK", [])
    yield bytes(2 * IN_MEMORY)
    raise RuntimeError("secret")


def ask(application: Any, *pieces: bytes | None) -> Protocol:
    """Return what a request with a body in these pieces gets."""
    protocol = Protocol(pieces)
    asyncio.run(WsgiThreads(application, FaultLog()).respond(SCOPE, protocol))
    return protocol


def test_a_body_is_read_piece_by_piece() -> None:
    answer = ask(echo, b"ab", b"", b"cdef", b"g")

    assert (answer.status, answer.body) == (200, b"abcdefg")
    assert answer.headers["X-Path"] == "/é".encode().decode("latin-1")
    assert (answer.headers["X-Host"], answer.headers["server"]) == (
        "veilcount.example",
        "veilcount",
    )


@pytest.mark.parametrize("first", [b"abc", bytes(FIRST_BYTES)], ids=["small", "large"])
def test_a_body_is_waited_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch, first: bytes) -> None:
    monkeypatch.setattr(wsgi_threads, "BODY_SECONDS", 0.1)

    assert ask(echo, first, NEVER).status == 408


def test_a_body_that_does_not_come_takes_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads are free for others, and the application never sees it."""
    monkeypatch.setattr(wsgi_threads, "BODY_SECONDS", 0.5)
    threads = WsgiThreads(echo, FaultLog(), threads=1)
    slow, honest = [Protocol((b"a", NEVER)) for _ in range(20)], Protocol((b"honest",))

    async def both() -> list[int]:
        waiting = [asyncio.create_task(threads.respond(SCOPE, each)) for each in slow]
        await asyncio.sleep(0)
        await threads.respond(SCOPE, honest)
        unanswered = [each.status for each in slow]
        await asyncio.gather(*waiting)
        return unanswered

    assert asyncio.run(both()) == [0] * len(slow)
    assert honest.body == b"honest"
    assert {each.status for each in slow} == {408}


def test_a_long_response_is_sent_in_pieces_and_its_length_is_known() -> None:
    answer = ask(long)

    assert (answer.status, len(answer.body), answer.body[-3:]) == (200, IN_MEMORY + 3, b"end")
    assert answer.headers["content-length"] == str(IN_MEMORY + 3)


def test_of_a_response_that_breaks_off_nothing_is_sent() -> None:
    answer = ask(breaks)

    assert (answer.status, answer.headers["Retry-After"]) == (500, "2")
    assert f"{TYPE_PREFIX}failed".encode() in answer.body
    assert b"secret" not in answer.body


def test_reports_before_the_store_is_open_take_no_thread() -> None:
    """They are asked to come back: a store that hangs would keep all threads, and whoever waits."""
    protocol = Protocol()
    application = RsgiApplication(lambda: None, WsgiThreads(breaks, FaultLog()))
    asyncio.run(
        application.__rsgi__(
            SimpleNamespace(path=PATH, method="POST", http_version="1.1", headers={"host": "x"}),
            protocol,
        )
    )

    assert (protocol.status, protocol.headers["Retry-After"]) == (503, "2")
    assert protocol.headers["content-type"] == PROBLEM_TYPE
