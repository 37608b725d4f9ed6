"""An exchange ends at its deadline, whatever the server sends and however slowly.

Every server here is a real one, and each is shown to hold an exchange that nothing watches.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

from veilcount_client.delivery import deadline, transport
from veilcount_client.delivery.deadline import Deadline
from veilcount_client.delivery.transport import HttpTransport, Later, Outcome

from .server_fixtures import HOST, open_files, wait_until

MAX_SECONDS = 0.3
HANG = 60.0  # seconds after which an exchange that should end is not waited for
HELD = 1.5  # seconds in which one that nothing watches must not end
BODY = b"body"
LARGE = bytes(32 << 20)  # more than the buffers of both ends hold
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
TUNNEL = b"HTTP/1.1 200 Connection established\r\n\r\n"
TLS_RECORD = b"\x16\x03\x03\x40\x00"  # the start of 16 kB of a handshake

Peer = Callable[[socket.socket, threading.Event], None]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exchange has a third of a second; no single step of it runs into a timeout of its own."""
    monkeypatch.setattr(transport, "MAX_SECONDS", MAX_SECONDS)
    monkeypatch.setattr(transport, "TIMEOUT", (60.0, 60.0))
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


# -- servers ---------------------------------------------------------------------------------------


def dripping(first: bytes, again: bytes, pause: float = 0.02) -> Peer:
    """Return a peer that responds, and then sends the same without end."""

    def behave(connection: socket.socket, stopped: threading.Event) -> None:
        if not connection.recv(1 << 16):  # the deadline was faster than the request
            return
        connection.sendall(first)
        while not stopped.wait(pause):
            connection.sendall(again)

    return behave


def in_tunnel(inner: Peer) -> Peer:
    """Return a proxy that takes a CONNECT, and then behaves like the peer."""

    def behave(connection: socket.socket, stopped: threading.Event) -> None:
        connection.recv(1 << 16)
        connection.sendall(TUNNEL)
        inner(connection, stopped)

    return behave


def announcing(inner: Peer, reached: threading.Event) -> Peer:
    def behave(connection: socket.socket, stopped: threading.Event) -> None:
        reached.set()
        inner(connection, stopped)

    return behave


def silent(connection: socket.socket, stopped: threading.Event) -> None:
    stopped.wait()


def reading_slowly(connection: socket.socket, stopped: threading.Event) -> None:
    while not stopped.wait(0.02):
        connection.recv(1)


def encrypted(inner: Peer, certificate: Path) -> Peer:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def behave(connection: socket.socket, stopped: threading.Event) -> None:
        with context.wrap_socket(connection.dup(), server_side=True) as wrapped:
            inner(wrapped, stopped)

    return behave


@contextmanager
def listening(peer: Peer) -> Iterator[str]:
    """Yield the host and port of a peer that takes one connection."""
    stopped = threading.Event()
    with socket.create_server((HOST, 0)) as server:
        sockets = [server]

        def serve() -> None:
            with suppress(OSError):
                connection, _ = server.accept()
                sockets.append(connection)
                with connection:
                    peer(connection, stopped)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"{HOST}:{server.getsockname()[1]}"
        finally:
            stopped.set()
            for each in sockets:  # whatever it waits for
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            thread.join(HANG)


# -- ways to hold an exchange ----------------------------------------------------------------------


@dataclass(frozen=True)
class Hold:
    """A peer, how it is reached, and what is sent to it."""

    peer: Peer
    scheme: str = "http"
    proxy: bool = False
    body: bytes = BODY

    @contextmanager
    def sender(self, patch: pytest.MonkeyPatch) -> Iterator[Callable[[], Outcome]]:
        """Yield what sends the body to the peer."""
        with listening(self.peer) as address:
            target = "aggregator.example.org" if self.proxy else address
            if self.proxy:
                patch.setenv(f"{self.scheme}_proxy", f"http://{address}")
            sender = HttpTransport(f"{self.scheme}://{target}", None, time.time)
            yield partial(sender.send, self.body, 1)


HEADERS = dripping(OK + b"X: ", b"x")
HANDSHAKE = dripping(TLS_RECORD, b"\x02")
HOLDS = {
    "status line": Hold(dripping(b"HTTP/1.1 200 ", b"x")),
    "headers": Hold(HEADERS),
    "body": Hold(dripping(OK + b"Content-Length: 60000\r\n\r\n", b" ")),
    "body without length": Hold(dripping(OK + b'\r\n{"verdicts":["counted"]}', b" ")),
    "chunk size": Hold(dripping(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0")),
    "interim responses": Hold(dripping(b"", INTERIM)),
    "many interim responses": Hold(dripping(INTERIM * 10_000, INTERIM)),
    "silence": Hold(silent),
    "unread body": Hold(silent, body=LARGE),
    "slowly read body": Hold(reading_slowly, body=LARGE),
    "handshake": Hold(HANDSHAKE, "https"),
    "silent handshake": Hold(silent, "https"),
    "proxy": Hold(HEADERS, proxy=True),
    "proxy of tunnels": Hold(HEADERS, "https", proxy=True),
    "handshake in a tunnel": Hold(in_tunnel(HANDSHAKE), "https", proxy=True),
}


def attempt(send: Callable[[], Outcome]) -> tuple[threading.Thread, list[Outcome]]:
    """Send in a thread of its own; return it, and where the outcome will be."""
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(send()), daemon=True)
    thread.start()
    return thread, outcomes


def outcome(send: Callable[[], Outcome]) -> Outcome | None:
    """Return what becomes of an exchange; None if it hangs.

    In a thread of its own: whatever ends a test that hangs would look like the deadline.
    """
    thread, outcomes = attempt(send)
    thread.join(HANG)
    return next(iter(outcomes), None)


def connected(send: Callable[[], Outcome]) -> Outcome | None:
    """Return the same of an exchange that began: a busy machine may connect too late for it."""
    outcomes = (outcome(send) for _ in range(20))
    return next((found for found in outcomes if found != Later("ConnectTimeout", seen=False)), None)


def test_an_error_after_the_deadline_is_its_own_though_the_timer_is_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threading.Timer, "start", lambda _: None)

    with pytest.raises(ConnectionError), Deadline(60):
        raise ConnectionError("reset")
    with pytest.raises(TimeoutError), Deadline(0):
        raise ConnectionError("reset")


@pytest.mark.parametrize("name", HOLDS)
def test_an_exchange_ends_at_its_deadline(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As something to try again later, though what was read until then may look complete.

    No thread lives on, and no open file but the peer's own connection.
    """
    before = set(threading.enumerate())
    with HOLDS[name].sender(monkeypatch) as send:
        files = open_files()

        assert connected(send) == Later("TimeoutError")
        assert wait_until(lambda: open_files() <= files + 1)
    assert set(threading.enumerate()) <= before


def test_a_socket_timeout_alone_does_not_end_these(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: nothing is watched, and all of them hold for as long as is waited."""
    monkeypatch.setattr(Deadline, "watch", lambda *_: None)
    monkeypatch.setattr(Deadline, "remaining", lambda _: HANG)  # a busy machine connects too late
    with ExitStack() as stack:
        attempts = {}
        for name, hold in HOLDS.items():
            with monkeypatch.context() as patch:
                reached = threading.Event()
                watched = replace(hold, peer=announcing(hold.peer, reached))
                attempts[name] = attempt(stack.enter_context(watched.sender(patch)))
                assert reached.wait(HANG)  # by now the environment's proxy was read
        time.sleep(HELD)
        ended = {name for name, (thread, _) in attempts.items() if not thread.is_alive()}

    assert not ended


def test_an_encrypted_exchange_ends_too(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    monkeypatch.setattr(transport, "MAX_SECONDS", 2.0)  # enough for the handshake
    reached = threading.Event()
    peer = encrypted(announcing(HEADERS, reached), certificate)
    with Hold(peer, "https").sender(monkeypatch) as send:
        assert outcome(send) == Later("TimeoutError")
        assert reached.is_set()


def send_to(url: str) -> Outcome:
    return HttpTransport(url, None, time.time).send(BODY, 1)


# -- connecting ------------------------------------------------------------------------------------


@pytest.fixture
def unanswered(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a host that has a thousand addresses, none of which answers."""
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server((HOST, 0), backlog=0))
        for _ in range(4):  # what a backlog takes in; further connections stay without an answer
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            with suppress(BlockingIOError):
                waiting.connect(full.getsockname())
        entry = (socket.AF_INET, socket.SOCK_STREAM, 6, "", full.getsockname())

        def resolve(host: str, *_: object, **__: object) -> list[object]:
            return [entry] * (1 if host == HOST else 1_000)

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        yield f"http://aggregator.example.org:{full.getsockname()[1]}"


def test_many_addresses_end_at_a_deadline(unanswered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The timeout to connect is an address's; the deadline is for all of them."""
    monkeypatch.setattr(transport, "TIMEOUT", (0.2, 0.2))

    assert isinstance(outcome(partial(send_to, unanswered)), Later)


def test_a_timeout_to_connect_is_no_end(unanswered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: no time remains the same as all of it."""
    monkeypatch.setattr(transport, "TIMEOUT", (0.2, 0.2))
    monkeypatch.setattr(Deadline, "remaining", lambda _: 60.0)
    thread, _ = attempt(partial(send_to, unanswered))
    thread.join(HELD)

    assert thread.is_alive()


def test_the_first_address_that_accepts_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_addresses", lambda *_: ["127.0.0.2", HOST])
    with listening(dripping(OK + b"Content-Length: 0\r\n\r\n", b"")) as address:
        reply = HttpTransport(f"http://{address}", None, time.time).request("GET", "/", b"")

    assert reply.status == 200


def test_a_connection_that_resolves_itself_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """As through a SOCKS proxy, which alone resolves the name."""
    with listening(HEADERS) as address:
        host, _, port = address.partition(":")

        class Rerouted(HTTPConnection):
            def _new_conn(self) -> socket.socket:
                return socket.create_connection((host, int(port)))

        monkeypatch.setattr(HTTPConnectionPool, "ConnectionCls", Rerouted)

        assert outcome(partial(send_to, "http://aggregator.example.org")) == Later("TimeoutError")


def test_a_deadline_that_has_passed_watches_nothing_more() -> None:
    """A connection that was made a moment too late is refused."""
    one, other = socket.socketpair()
    passed = Deadline(0.0)
    with one, other, pytest.raises(TimeoutError):
        passed.watch(one)


def test_an_interpreter_without_new_threads_delivers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the exit, from Python 3.12 on."""
    refused = RuntimeError("can't create new thread at interpreter shutdown")
    monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=refused))
    one, other = socket.socketpair()
    with one, other, Deadline(60) as running:
        running.watch(one)

        assert running.remaining() > 0
