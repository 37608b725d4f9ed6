"""Real servers on the loopback, one for each way in which an aggregator, or a stranger, behaves.

A `Server` reads a request, keeps everything of it, and hands it to a behaviour, which answers on
the bare socket: what a well-made server library would never send is sent here.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path

from veilcount_shared.report import Batch, Report
from veilcount_shared.wire import decode_binary

HOST = "127.0.0.1"
BLOCK = bytes(1 << 20)

Slot = tuple[str, bytes, int, int]


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    connection: int
    at: float

    def header(self, name: str) -> str | None:
        return dict(self.headers).get(name)

    def batch(self) -> Batch:
        return decode_binary(self.body)


Behaviour = Callable[["Server", socket.socket, Request], None]


@dataclass
class Server:
    """Listens, keeps what it receives, and responds by its behaviour."""

    behaviour: Behaviour
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    _open: list[socket.socket] = field(default_factory=list)
    seen: dict[Slot, set[bytes]] = field(default_factory=dict)
    stopped: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._socket = socket.create_server((HOST, 0), backlog=128)
        self.port: int = self._socket.getsockname()[1]
        self._threads = [threading.Thread(target=self._listen, daemon=True)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def posts(self) -> list[Request]:
        return [each for each in self.requests if each.path == "/v1/reports"]

    @property
    def reports(self) -> list[Report]:
        """All reports that came, as often as they came."""
        return [report for each in self.posts for report in each.batch().reports]

    def count(self, report: Report) -> bool:
        slot = (report.fingerprint, report.pseudonym, report.period, report.slot)
        with self._lock:
            known = slot in self.seen
            self.seen.setdefault(slot, set()).add(report.message)
        return not known

    @property
    def is_consistent(self) -> bool:
        """Whether each slot had one message, however often it came."""
        return all(len(messages) == 1 for messages in self.seen.values())

    def stop(self) -> None:
        self.stopped.set()
        for each in (self._socket, *self._open):  # whatever it waits for
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        self._socket.close()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.connections += 1
                self._open.append(connection)
                arguments = (connection, self.connections)
                thread = threading.Thread(target=self._serve, args=arguments, daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection, suppress(OSError):
            connection.settimeout(60)
            with connection.makefile("rb") as reader:
                while request := _read(reader, number):
                    self.requests.append(request)
                    self.behaviour(self, connection, request)


def wait_until(true: Callable[[], bool], seconds: float = 60.0) -> bool:
    ends = time.monotonic() + seconds
    while not true():
        if time.monotonic() > ends:
            return False
        time.sleep(0.005)
    return True


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@contextmanager
def serving(behaviour: Behaviour) -> Iterator[Server]:
    """Yield a server that behaves like this, and stop it."""
    server = Server(behaviour)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def nobody() -> Iterator[str]:
    """Yield the URL of a port that refuses: bound, so that nobody else listens there."""
    with socket.socket() as bound:
        bound.bind((HOST, 0))
        yield f"http://{HOST}:{bound.getsockname()[1]}"


# -- behaviours ------------------------------------------------------------------------------------


def counting(server: Server, connection: socket.socket, request: Request) -> None:
    """Count each report, once a slot, as an aggregator does."""
    if request.path != "/v1/reports":
        connection.sendall(reply(204))
        return
    fresh = [server.count(report) for report in request.batch().reports]
    words = ["counted" if each else "duplicate" for each in fresh]
    connection.sendall(verdicts(words))


def silent(server: Server, connection: socket.socket, request: Request) -> None:
    server.stopped.wait()


def dropping(server: Server, connection: socket.socket, request: Request) -> None:
    """Count, and lose the reply."""
    for report in request.batch().reports:
        server.count(report)
    raise ConnectionAbortedError


def dripping(server: Server, connection: socket.socket, request: Request) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n")
    while not server.stopped.wait(0.05):
        connection.sendall(b" ")


def huge(server: Server, connection: socket.socket, request: Request) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n")
    for _ in range(100):
        connection.sendall(BLOCK)


def answering(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    """Return what always answers the same; `_` in a header's name stands for `-`."""
    sent = reply(status, body, {name.replace("_", "-"): each for name, each in headers.items()})

    def behave(server: Server, connection: socket.socket, request: Request) -> None:
        connection.sendall(sent)

    return behave


def responding(raw: bytes) -> Behaviour:
    """Return what answers with these very bytes, and hangs up."""

    def behave(server: Server, connection: socket.socket, request: Request) -> None:
        connection.sendall(raw)
        raise ConnectionAbortedError

    return behave


def with_verdicts(*words: str) -> Behaviour:
    return responding(verdicts(list(words)))


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """Return what behaves like each in turn, and from then on like the last."""

    def behave(server: Server, connection: socket.socket, request: Request) -> None:
        turn = min(server.requests.index(request), len(behaviours) - 1)
        behaviours[turn](server, connection, request)

    return behave


def problem(status: int) -> Behaviour:
    """Return what answers as an aggregator that does not like a body."""
    return answering(status, b'{"title": "no batch"}', Content_Type="application/problem+json")


def verdicts(words: list[str]) -> bytes:
    body = json.dumps({"verdicts": words}).encode()
    return reply(200, body, {"Content-Type": "application/json", "Set-Cookie": "who=you; Path=/"})


def reply(status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> bytes:
    """Return a whole reply. Keep-alive is offered, so that a client that reuses would reuse."""
    fields = {"Content-Length": len(body), "Connection": "keep-alive", **(headers or {})}
    lines = [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join([f"HTTP/1.1 {status} X", *lines, "", ""]).encode() + body


def _read(reader: BufferedReader, connection: int) -> Request | None:
    first = reader.readline().decode("latin-1").split()
    if len(first) != 3:
        return None
    headers = []
    while header := reader.readline().decode("latin-1").strip():
        name, _, value = header.partition(":")
        headers.append((name.lower(), value.strip()))
    length = int(dict(headers).get("content-length", "0"))
    body = reader.read(length)
    if len(body) < length:  # the sender was killed
        return None
    return Request(first[0], first[1], tuple(headers), body, connection, time.monotonic())
