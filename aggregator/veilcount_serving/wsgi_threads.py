"""A WSGI application behind RSGI: each request takes a thread, once it is there.

A body is read on the event loop until its end, or up to a size that few have: only whoever sends
more than that occupies a thread while it comes.

The response is whole before its head is sent, so that one which breaks off is never taken for
complete: a long one is written to a temporary file meanwhile.
"""

from __future__ import annotations

import asyncio
import io
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from typing import Any
from wsgiref.types import WSGIApplication, WSGIEnvironment

from veilcount_shared.problem_details import FAILED, INCOMPLETE, PROBLEM_TYPE, Problem, problem_of

from .request_ids import HEADER as REQUEST_ID
from .request_ids import OWN_IDS, RequestIds
from .response_headers import HEADERS
from .structured_logging import FaultLog
from .worker_supervisor import NAME

THREADS = 32
CHUNK = 1 << 16
IN_MEMORY = 1 << 20  # bytes of a response
BODY_SECONDS = 10.0  # for the first part of a request's body, and for each piece of the rest
FIRST_BYTES = 1 << 14
ENDPOINT = "response"  # in the log
REPEATED = "veilcount.repeated"  # headers that came more than once: the last one counts
_PLAIN = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}

Header = tuple[str, str]


class BodyReader(io.RawIOBase):
    """The rest of a request's body: its pieces come from the loop as the application reads."""

    def __init__(self, first: bytes, pieces: Any, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._pieces = pieces
        self._loop = loop
        self._left = first

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes; OSError: they did not come."""
        if not self._left:
            self._left = self._next()
        some = self._left[: len(buffer)]
        buffer[: len(some)] = some
        self._left = self._left[len(some) :]
        return len(some)

    def _next(self) -> bytes:
        waiting = asyncio.run_coroutine_threadsafe(_following(self._pieces), self._loop)
        try:
            return waiting.result(BODY_SECONDS)
        except (FutureTimeoutError, RuntimeError) as error:
            waiting.cancel()
            raise OSError("the body did not come") from error


async def _read(
    announced: str, protocol: Any, loop: asyncio.AbstractEventLoop
) -> io.BufferedIOBase:
    """Return a body: whole, or its first part and a reader of the rest; TimeoutError: neither.

    One that is announced as long is not waited for: the application may refuse it at once.
    """
    pieces, first = aiter(protocol), bytearray()
    is_long = announced.isdecimal() and int(announced) > FIRST_BYTES
    async with asyncio.timeout(BODY_SECONDS):
        while len(first) < FIRST_BYTES and not is_long:
            if not (piece := await _following(pieces)):
                return io.BytesIO(first)
            first += piece
    return io.BufferedReader(BodyReader(bytes(first), pieces, loop))


async def _following(pieces: Any) -> bytes:
    """Return the next piece that is not empty; b"": it was the last."""
    try:
        while not (piece := await anext(pieces)):  # with a default it ends the process (3.11)
            pass
    except StopAsyncIteration:
        return b""
    return bytes(piece)


class WsgiThreads:
    """Answers requests by a WSGI application, on threads."""

    def __init__(
        self,
        application: WSGIApplication,
        faults: FaultLog,
        threads: int = THREADS,
        ids: RequestIds = OWN_IDS,
    ) -> None:
        """Answer by this application, which handles its own errors; `faults` has what is left."""
        self._application = application
        self._faults = faults
        self._ids = ids
        self._pool = ThreadPoolExecutor(threads, "veilcount-request")

    async def respond(self, scope: Any, protocol: Any) -> None:
        """Answer one request."""
        loop = asyncio.get_running_loop()
        try:
            body = await _read(scope.headers.get("content-length") or "", protocol, loop)
        except (TimeoutError, RuntimeError):  # it does not come, or its sender went away
            self.respond_problem(scope, protocol, problem_of(INCOMPLETE))
            return
        environ = _environ(scope) | {"wsgi.input": body, "wsgi.input_terminated": True}
        try:
            status, headers, page = await loop.run_in_executor(self._pool, self._answer, environ)
        except Exception as error:  # noqa: BLE001 - answered as what it is
            # in place of a body that broke off: nothing of it was sent
            name = self._ids.choose(scope.headers.get(REQUEST_ID))
            self._faults.log("failed", ENDPOINT, error, request=name)
            _respond_problem(protocol, replace(problem_of(FAILED, retry=True), request=name))
            return
        with page:
            size = page.seek(0, io.SEEK_END)
            page.seek(0)
            if size <= IN_MEMORY:
                protocol.response_bytes(status, headers, page.read())
                return
            stream = protocol.response_stream(status, [*headers, ("content-length", str(size))])
            while piece := await loop.run_in_executor(self._pool, page.read, CHUNK):
                await stream.send_bytes(piece)

    async def call(self, environ: WSGIEnvironment) -> tuple[int, list[Header], bytes]:
        """Return the application's status, headers and body for a request of this process."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._answer_whole, environ)

    def _answer_whole(self, environ: WSGIEnvironment) -> tuple[int, list[Header], bytes]:
        status, headers, page = self._answer(environ)
        with page:
            page.seek(0)
            return status, headers, page.read()

    def respond_problem(self, scope: Any, protocol: Any, problem: Problem) -> None:
        """Respond with a problem document, which names the request."""
        name = self._ids.choose(scope.headers.get(REQUEST_ID))
        _respond_problem(protocol, replace(problem, request=name))

    def _answer(self, environ: WSGIEnvironment) -> tuple[int, list[Header], Any]:
        head: list[tuple[int, list[Header]]] = []

        def start(
            status: str, headers: list[Header], _: object = None, /
        ) -> Callable[[bytes], object]:
            head.append((int(status[:3]), headers))
            return body.write

        body = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed by who sends it
        try:
            pieces: Iterable[bytes] = self._application(environ, start)
            try:
                for piece in pieces:
                    body.write(piece)
            finally:
                if close := getattr(pieces, "close", None):
                    close()
        except BaseException:
            body.close()
            raise
        status, headers = head[-1]
        if environ["REQUEST_METHOD"] != "HEAD":  # else the length of a body that is not sent
            headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
        return status, [*headers, ("server", NAME)], body


def _respond_problem(protocol: Any, problem: Problem) -> None:
    headers = {"content-type": PROBLEM_TYPE, **HEADERS, **problem.headers}
    protocol.response_bytes(problem.status, [*headers.items(), ("server", NAME)], problem.body)


def _environ(scope: Any) -> WSGIEnvironment:
    """Return what WSGI says of a request; of its client nothing."""
    host, _, port = (scope.authority or scope.headers.get("host") or scope.server).rpartition(":")
    environ: WSGIEnvironment = {
        "REQUEST_METHOD": scope.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": scope.path.encode().decode("latin-1"),
        "QUERY_STRING": scope.query_string,
        "SERVER_NAME": host or port,
        "SERVER_PORT": port if host else "80",
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    names: set[str] = set()
    repeated = environ[REPEATED] = set[str]()
    for name, value in scope.headers.items():
        if "_" in name:  # WSGI has one name for it and for the one with dashes, which a proxy sets
            continue
        (repeated if name in names else names).add(name)
        environ[_PLAIN.get(name) or "HTTP_" + name.upper().replace("-", "_")] = value
    return environ
