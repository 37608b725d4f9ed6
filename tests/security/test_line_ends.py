"""A line feed without a carriage return: where nginx and the server read it, and what they pass on.

RFC 9112, section 2.2, lets a recipient take it for the end of a line of the head. Both do, and read
the same. In the framing of a body nginx takes it too: the server refuses it, and nginx writes each
request anew, with line ends of its own and a length in place of chunks.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from veilcount_aggregator.store import open_store

from ..system.deploy.nginx import Nginx, in_front_of
from ..system.server import HOST, Server
from .test_limits import CHUNKED, CLOSE, POST, SMUGGLED, head, say

LAST = head("GET", "/readyz", CLOSE)
BARE = re.compile(rb"(?<!\r)\n")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
UNLIMITED = {"rate=1r/s": "rate=10000r/s"}


def bare(raw: bytes) -> bytes:
    return raw.replace(b"\r\n", b"\n")


#: what both read as so many requests
HEADS = {
    "every line": (bare(head("GET", "/healthz", CLOSE)), 1),
    "two heads": (bare(head("GET", "/healthz") + LAST), 2),
    "a line before the head": (b"\n\n" + head("GET", "/healthz", CLOSE), 1),
    "a line between two": (head("GET", "/healthz") + b"\n" + LAST, 2),
    "the line that ends a head": (head("GET", "/healthz", "A: b\n")[:-2] + LAST, 2),
}
#: what the server refuses, whatever a proxy in front of it thinks of it
REFUSED = {
    "behind a chunk's size": head(*POST, CHUNKED) + b"3\nabc\r\n0\r\n\r\n" + SMUGGLED,
    "behind a chunk": head(*POST, CHUNKED) + b"3\r\nabc\n0\r\n\r\n" + SMUGGLED,
    "behind the last size": head(*POST, CHUNKED) + b"3\r\nabc\r\n0\n\r\n" + SMUGGLED,
    "in an extension": head(*POST, CHUNKED) + b"3;a\nabc\r\n0\r\n\r\n" + SMUGGLED,
    "in all of a body": head(*POST, CHUNKED) + b"3\nabc\n0\n\n" + SMUGGLED,
    "before a folded line": head(*POST, "Transfer-Encoding:\n chunked") + SMUGGLED,
    "before a carriage return": head("GET", "/healthz", "A: b\n\rC: d") + SMUGGLED,
    "in the first line": b"GET /healthz\n HTTP/1.1\r\nHost: x\r\n\r\n" + SMUGGLED,
    "behind a name": head("GET", "/healthz", "A\nB: c") + SMUGGLED,
    "no line feed": head("GET", "/healthz", "A: b\rContent-Length: 5") + SMUGGLED,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("line-ends")
    url = f"sqlite:///{folder}/store.db?durability=relaxed"
    open_store(url, make=True).close()
    with Server(url, folder) as served:
        yield served


@pytest.mark.parametrize("name", REFUSED)
def test_a_bare_line_feed_in_the_framing_of_a_body_is_refused(server: Server, name: str) -> None:
    heard = say(server.port, REFUSED[name])

    assert heard.statuses == [400]
    assert heard.ended


class RawUpstream:
    """An aggregator's place: keeps the bytes of each connection, and answers once they stop."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self._socket = socket.create_server((HOST, 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with suppress(OSError):  # closed
            while True:
                connection, _ = self._socket.accept()
                with closing(connection), suppress(OSError):
                    self.received.append(_read(connection))
                    connection.sendall(OK)

    def close(self) -> None:
        """Stop listening."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()


def _read(connection: socket.socket) -> bytes:
    """Read a request as its head announces it."""
    raw = b""
    while b"\r\n\r\n" not in raw:
        if not (piece := connection.recv(1 << 16)):
            return raw
        raw += piece
    length = re.search(rb"\r\ncontent-length: (\d+)", raw, re.IGNORECASE)
    whole = raw.index(b"\r\n\r\n") + 4 + (int(length[1]) if length else 0)
    while len(raw) < whole and (piece := connection.recv(1 << 16)):
        raw += piece
    return raw


@contextmanager
def proxied(folder: Path) -> Iterator[tuple[Nginx, RawUpstream]]:
    """Run nginx as it is shipped in front of something that keeps what it passes on."""
    upstream = RawUpstream()
    try:
        with in_front_of(folder, upstream.port, more=UNLIMITED) as nginx:
            yield nginx, upstream
    finally:
        upstream.close()


def send(nginx: Nginx, raw: bytes) -> None:
    """Send bytes over TLS, and wait until nginx has answered all that it takes for requests."""
    plain = socket.create_connection((HOST, nginx.port), 20)
    with nginx.tls().wrap_socket(plain, server_hostname="localhost") as connection:
        connection.sendall(raw)
        connection.settimeout(2.0)
        with suppress(OSError):
            while connection.recv(1 << 16):
                pass


def test_nginx_and_the_server_read_the_same_requests_and_it_passes_on_no_bare_line_feed(
    server: Server, tmp_path: Path
) -> None:
    with proxied(tmp_path / "nginx") as (nginx, upstream):
        for name, (raw, requests) in HEADS.items():
            upstream.received.clear()
            send(nginx, raw)
            passed = list(upstream.received)

            assert (name, say(server.port, raw).statuses) == (name, [200] * requests)
            assert (name, len(passed)) == (name, requests)
            assert (name, BARE.search(b"".join(passed))) == (name, None)
        for name, raw in REFUSED.items():
            upstream.received.clear()
            send(nginx, raw)

            for passed_on in upstream.received:
                assert (name, BARE.search(passed_on)) == (name, None)
                assert b"chunked" not in passed_on.lower()
