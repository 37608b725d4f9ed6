"""The analysis process: the WSGI application of a worker, at a lower priority.

It yields the CPU to the workers (nice), has a memory limit (RLIMIT_DATA), and exits to be restarted
if a request computes for too long or if its memory has grown. It exits on SIGTERM, and when the
server is gone.
"""

from __future__ import annotations

import io
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from wsgiref.types import WSGIApplication

from veilcount_serving.structured_logging import FaultLog

from .frames import CHUNK, BrokenChannel, Channel, Kind, to_environ

NAME = "vc-analysis"  # as ps and top show it
ENDPOINT = "analysis"
NICE = 10
OOM_SCORE = "500"
THREADS = 16  # concurrent requests; `ComputationGate` limits those that compute
IO_SECONDS = 60.0  # timeout of a worker that sends no body, or takes no response
MAX_COMPUTE_SECONDS = 120.0  # of computing, before a response begins
POLL_SECONDS = 0.2
DRAIN_SECONDS = 2.0
GROWN = 0.5  # of its memory limit: an idle process above it restarts

EXIT_ENDED, EXIT_STUCK, EXIT_GROWN = 0, 3, 4


def run(listener: socket.socket, application: WSGIApplication, parent: int, megabytes: int) -> int:
    """Serve requests until there is a reason to exit; return the exit code."""
    limit_resources(megabytes)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = AnalysisServer(listener, application)
    server.start()
    while True:
        if stopping.wait(POLL_SECONDS) or os.getppid() != parent:
            server.drain(DRAIN_SECONDS)
            return EXIT_ENDED
        if server.longest() > MAX_COMPUTE_SECONDS:
            return EXIT_STUCK
        if megabytes and server.is_idle() and resident_megabytes() > GROWN * megabytes:
            return EXIT_GROWN


def limit_resources(megabytes: int) -> None:
    """Lower the priority, and limit the memory for data (0: no limit)."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(NAME, encoding="ascii")
    with suppress(OSError):
        os.nice(NICE)
    with suppress(OSError):  # killed before a worker if memory runs out
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, encoding="ascii")
    if megabytes:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 20, hard))


def resident_megabytes() -> float:
    """Return the resident memory of this process in MB; 0 where it is unknown."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return pages * resource.getpagesize() / (1 << 20)


class AnalysisServer:
    """Threads that accept connections of one listener and serve one request each."""

    def __init__(self, listener: socket.socket, application: WSGIApplication) -> None:
        self._listener = listener
        self._application = application
        self._faults = FaultLog(time.monotonic)
        self._lock = threading.Lock()
        self._working: dict[int, AnalysisRequest] = {}

    def start(self) -> None:
        """Begin."""
        for _ in range(THREADS):
            threading.Thread(target=self._take, daemon=True).start()

    def is_idle(self) -> bool:
        """Whether no request is under way."""
        with self._lock:
            return not self._working

    def longest(self) -> float:
        """Return the longest computing time of the current requests."""
        with self._lock:
            return max((each.seconds for each in self._working.values()), default=0.0)

    def drain(self, seconds: float) -> None:
        """Wait for current requests to finish, up to so many seconds."""
        ends = time.monotonic() + seconds
        while not self.is_idle() and time.monotonic() < ends:
            time.sleep(POLL_SECONDS / 4)

    def _take(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # no file descriptor is free: some are soon
                time.sleep(POLL_SECONDS)
            else:
                self._answer(AnalysisRequest(Channel(connection), self._application, self._faults))

    def _answer(self, work: AnalysisRequest) -> None:
        me = threading.get_ident()
        with self._lock:
            self._working[me] = work
        try:
            work.answer()
        finally:
            with self._lock:
                del self._working[me]


class AnalysisRequest:
    """One request: read, computed, responded to."""

    def __init__(self, channel: Channel, application: WSGIApplication, faults: FaultLog) -> None:
        self._faults = faults
        self._channel = channel
        self._application = application
        self._computes: float | None = None  # since when
        self._head: tuple[str, list[tuple[str, str]]] | None = None

    @property
    def seconds(self) -> float:
        """Computing time so far; waiting for I/O does not count."""
        begun = self._computes
        return 0.0 if begun is None else time.monotonic() - begun

    def answer(self) -> None:
        """Respond; the worker handles a connection that breaks off."""
        self._channel.set_timeout(IO_SECONDS)
        try:
            self._respond(to_environ(self._channel.expect(Kind.REQUEST)))
        except BrokenChannel:
            pass  # the worker or its client went away
        except Exception as error:  # noqa: BLE001 - a body that cannot be finished: it breaks off
            self._faults.log("failed", ENDPOINT, error)
        finally:
            self._channel.close()

    def _respond(self, environ: dict[str, Any]) -> None:
        self._channel.send(Kind.ACCEPTED)
        body = _Body(self._channel, self._pause)
        self._computes = time.monotonic()
        pieces = self._application(_environ(environ, body), self._start)
        try:
            self._send(pieces)
        finally:
            self._computes = None
            if hasattr(pieces, "close"):
                pieces.close()

    def _send(self, pieces: Iterable[bytes]) -> None:
        begun = False
        for piece in pieces:
            if not begun:
                self._begin()
                begun = True
            for part in _cut(piece):
                self._channel.send(Kind.BODY, part)
        if not begun:
            self._begin()
        self._channel.send(Kind.END)

    def _begin(self) -> None:
        self._computes = None
        self._channel.send_json(Kind.HEAD, self._head)

    def _start(
        self, status: str, headers: list[tuple[str, str]], _: object = None, /
    ) -> Callable[[bytes], object]:
        self._head = (status, headers)
        return _no_writing

    def _pause(self, *, on: bool) -> None:
        self._computes = None if on else time.monotonic()


class _Body(io.RawIOBase):
    """The body of a request, pulled from the worker as it is read."""

    def __init__(self, channel: Channel, pause: Callable[..., None]) -> None:
        self._channel = channel
        self._pause = pause

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read up to so many bytes; none at the end."""
        self._pause(on=True)
        self._channel.send(Kind.READ, str(min(len(buffer), CHUNK)).encode())
        kind, payload = self._channel.receive()
        self._pause(on=False)
        if kind is not Kind.DATA:
            raise OSError("the sender of this body disconnected")
        buffer[: len(payload)] = payload
        return len(payload)


def _environ(request: dict[str, Any], body: _Body) -> dict[str, Any]:
    return {
        "SCRIPT_NAME": "",
        "QUERY_STRING": "",
        **request,
        "wsgi.version": (1, 0),
        "wsgi.input": io.BufferedReader(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }


def _cut(piece: bytes) -> Iterator[bytes]:
    for begin in range(0, len(piece), CHUNK):
        yield piece[begin : begin + CHUNK]


def _no_writing(_: bytes) -> object:
    raise NotImplementedError("an application yields its body")
