"""A connection to the front: plain requests are taken one by one, all else is passed on.

A request is taken once it has come as a whole, and the next one is looked at once it is answered.
The first that is not surely plain goes as it came to the server behind the front, and so does all
that follows on its connection, for good: no answer of the front ever comes between that server's.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Protocol, cast

from .plain_head import PlainHead

MOST_HEAD = 8 << 10
MOST_WAITING = 64 << 10  # bytes behind a request that is not answered yet
READ_BYTES = 24 << 10  # at a time: the longest head, so that its refusal names what is too long
_END = b"\r\n\r\n"

Header = tuple[str, str]
_read = bytearray(READ_BYTES)  # by all connections: what was read is copied at once


class FrontInterface(Protocol):
    """What a connection needs of the front that it came to."""

    start: bytes
    connections: set[FrontConnection]
    date: str

    def head(self, raw: bytes) -> PlainHead | None:
        """Return a plain head; None: it is not surely plain."""

    def take(self, request: PlainRequest) -> bool:
        """Take a request, which is answered now or later; False: it is not taken."""

    def incomplete(self, request: PlainRequest) -> None:
        """Answer a request whose body did not come."""

    def pass_on(self, transport: asyncio.Transport, data: bytes, *, is_over: bool) -> None:
        """Pass a connection on with what has come, all if it `is_over`; it is not read now."""

    def now(self) -> float:
        """Return the time of the loop."""


class PlainRequest:
    """A plain request that has come as a whole, until it is answered."""

    __slots__ = ("_connection", "begun", "body", "head")

    def __init__(
        self, connection: FrontConnection, head: PlainHead, body: bytes, begun: float
    ) -> None:
        self._connection = connection
        self.head = head
        self.body = body
        self.begun = begun

    @property
    def peer(self) -> str | None:
        """The address that it came from; None: it is gone."""
        return self._connection.peer

    @property
    def is_answered(self) -> bool:
        """Whether it was answered, or nobody waits for an answer any more."""
        return self._connection.request is not self

    def answer(self, status: int, headers: list[Header], body: bytes) -> None:
        """Answer it, unless that was done: a late outcome must not answer the next request."""
        if not self.is_answered:
            self._connection.answer(status, headers, body)


class FrontConnection(asyncio.BufferedProtocol):
    """One connection, until it ends or is passed on."""

    __slots__ = ("_data", "_ended", "_front", "_full", "_head", "_transport", "request", "since")

    def __init__(self, front: FrontInterface) -> None:
        self._front = front
        self._data = b""
        self._head: PlainHead | None = None
        self._ended = False  # nothing more comes
        self._full = False  # it does not read its answers
        self.request: PlainRequest | None = None
        self.since = front.now()

    @property
    def peer(self) -> str | None:
        """The address of the other end; None: it is gone."""
        return peer_of(self._transport)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._front.connections.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        """End: whoever waited is gone."""
        self.request = None
        self._front.connections.discard(self)

    def get_buffer(self, _: int) -> bytearray:
        """Return where to read to."""
        return _read

    def buffer_updated(self, size: int) -> None:
        """Read a request, unless one is waiting for its answer."""
        data = bytes(memoryview(_read)[:size])
        if not self._data:
            self.since = self._front.now()
        self._data = self._data + data if self._data else data
        if self.request is None and not self._full:
            self._read()
        elif len(self._data) > MOST_WAITING:
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """Close; what waits is answered first."""
        self._ended = True
        if self.request is None and self._data:  # it was just answered, and more had come
            asyncio.get_running_loop().call_soon(self._read_on)
        return self.request is not None or bool(self._data)

    def pause_writing(self) -> None:
        """Take nothing from whoever does not read."""
        self._full = True

    def resume_writing(self) -> None:
        """Take the next request."""
        self._full = False
        self._read_on()

    def answer(self, status: int, headers: list[Header], body: bytes) -> None:
        """Answer the request; then close, or look at the next one."""
        closes = self._head is not None and self._head.closes
        self.request = self._head = None
        self.since = self._front.now()
        self._transport.write(_top(status, tuple(headers), len(body), self._front.date) + body)
        if closes or (self._ended and not self._data):
            self._transport.close()
        elif self._data:
            asyncio.get_running_loop().call_soon(self._read_on)

    def end_overdue(self, before: float) -> None:
        """End what has not sent a request in time: since `before`, or in the middle of one."""
        if self.since > before or self.request is not None:
            return
        if self._transport.is_closing():
            self._transport.abort()  # who does not read its answer
        elif self._head is not None:
            self._ended, self._data = True, b""
            self.request = PlainRequest(self, self._head, b"", self.since)
            self._front.incomplete(self.request)
            self._transport.close()
        else:
            self._transport.close()

    def close_idle(self) -> None:
        """Close it, unless a request waits for its answer."""
        self._ended = True
        if self.request is None:
            self._transport.close()

    def abort(self) -> None:
        """End it at once."""
        self._transport.abort()

    def _read_on(self) -> None:
        if self.request is not None or self._full or self._transport.is_closing():
            return
        self._read()
        if self not in self._front.connections:  # it was passed on
            return
        if self._ended and self.request is None:
            self._transport.close()
        elif len(self._data) <= MOST_WAITING and not self._ended:
            self._transport.resume_reading()

    def _read(self) -> None:
        data = self._data
        end = data.find(_END) + len(_END)
        if end > MOST_HEAD:
            self._pass_on()
            return
        if end < len(_END):
            start = self._front.start
            if len(data) > MOST_HEAD or data[: len(start)] != start[: len(data)]:
                self._pass_on()
            return
        if self._head is None:
            self._head = self._front.head(data[:end])
            if self._head is None:
                self._pass_on()
                return
            self.since = self._front.now()
        size = end + self._head.size
        if len(data) >= size:
            self._take(PlainRequest(self, self._head, data[end:size], self._front.now()), size)

    def _take(self, request: PlainRequest, size: int) -> None:
        self.request = request
        data, self._data = self._data, self._data[size:]
        if not self._front.take(request):
            self.request, self._data = None, data
            self._pass_on()

    def _pass_on(self) -> None:
        self._transport.pause_reading()
        data, self._data = self._data, b""  # a `_read_on` that is due passes nothing on again
        self._front.pass_on(self._transport, data, is_over=self._ended)
        self._front.connections.discard(self)


def peer_of(transport: asyncio.Transport) -> str | None:
    """Return the address of a connection's other end, "" at a Unix socket; None: it is gone."""
    peer: tuple[Any, ...] | str | None = transport.get_extra_info("peername")
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else peer


@lru_cache(64)  # nearly all responses have one of few heads, until the date changes
def _top(status: int, headers: tuple[Header, ...], length: int, date: str) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    fields = [*headers, ("content-length", str(length)), ("date", date)]
    lines += [f"{name.lower()}: {value}" for name, value in fields]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
