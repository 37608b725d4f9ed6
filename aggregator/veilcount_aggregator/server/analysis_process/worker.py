"""What the analysis process runs: the same WSGI application as a worker, below it in everything.

It goes after the workers for the CPU (nice), may take so much memory and no more (a limit of the
kernel's), and ends itself, to be started anew, if a request computes for too long or if it has
grown. It ends when it is asked to, and when the server does.
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

from ...structured_logging import FaultLog
from .frames import CHUNK, BrokenChannel, Channel, Kind, to_environ

NAME = "vc-analysis"  # as `ps` and `top` show it
DOOR = "analysis"
NICE = 10
OOM_SCORE = "500"
THREADS = 16  # requests at once; `ComputationGate` says how many of them compute
SILENT_SECONDS = 60.0  # of a worker that gives no body, or of a reader who takes no answer
MOST_SECONDS = 120.0  # of computing, before a response begins
LOOK_SECONDS = 0.2
DRAIN_SECONDS = 2.0
GROWN = 0.5  # of its memory: idle, it starts anew above

EXIT_ENDED, EXIT_STUCK, EXIT_GROWN = 0, 3, 4


def run(listener: socket.socket, application: WSGIApplication, parent: int, megabytes: int) -> int:
    """Answer requests until there is a reason to end; return the exit code."""
    limit_resources(megabytes)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = AnalysisServer(listener, application)
    server.start()
    while True:
        if stopping.wait(LOOK_SECONDS) or os.getppid() != parent:
            server.drain(DRAIN_SECONDS)
            return EXIT_ENDED
        if server.longest() > MOST_SECONDS:
            return EXIT_STUCK
        if megabytes and server.is_idle() and resident_megabytes() > GROWN * megabytes:
            return EXIT_GROWN


def limit_resources(megabytes: int) -> None:
    """Stand back behind the workers, with so much memory for data (0: any)."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(NAME, encoding="ascii")
    with suppress(OSError):
        os.nice(NICE)
    with suppress(OSError):  # before a worker, should memory end
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, encoding="ascii")
    if megabytes:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 20, hard))


def resident_megabytes() -> float:
    """Return how much memory this process holds, in MB; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return pages * resource.getpagesize() / (1 << 20)


class AnalysisServer:
    """Threads that each take a connection from one listener, and answer it."""

    def __init__(self, listener: socket.socket, application: WSGIApplication) -> None:
        """Answer what comes at this listener."""
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
        """Return how long the request that has computed longest did so."""
        with self._lock:
            return max((each.seconds for each in self._working.values()), default=0.0)

    def drain(self, seconds: float) -> None:
        """Let what is under way come to an end, for so many seconds."""
        ends = time.monotonic() + seconds
        while not self.is_idle() and time.monotonic() < ends:
            time.sleep(LOOK_SECONDS / 4)

    def _take(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # no file descriptor is free: some are soon
                time.sleep(LOOK_SECONDS)
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
    """One request: read, computed, answered."""

    def __init__(self, channel: Channel, application: WSGIApplication, faults: FaultLog) -> None:
        """Answer over this channel."""
        self._faults = faults
        self._channel = channel
        self._application = application
        self._computes: float | None = None  # since when
        self._head: tuple[str, list[tuple[str, str]]] | None = None

    @property
    def seconds(self) -> float:
        """How long it has been computing; none while others are waited for."""
        begun = self._computes
        return 0.0 if begun is None else time.monotonic() - begun

    def answer(self) -> None:
        """Answer; one that breaks off is seen to by the worker."""
        self._channel.wait_for(SILENT_SECONDS)
        try:
            self._respond(to_environ(self._channel.expect(Kind.REQUEST)))
        except BrokenChannel:
            pass  # the worker or its client went away
        except Exception as error:  # noqa: BLE001 - a body that cannot be finished: it breaks off
            self._faults.log("failed", DOOR, error)
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
            raise OSError("whoever sends this body went away")
        buffer[: len(payload)] = payload
        return len(payload)


def _environ(given: dict[str, Any], body: _Body) -> dict[str, Any]:
    return {
        "SCRIPT_NAME": "",
        "QUERY_STRING": "",
        **given,
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
