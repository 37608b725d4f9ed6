"""A WSGI application behind RSGI: each request takes a thread, once the head of it is there.

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
from typing import Any
from wsgiref.types import WSGIApplication, WSGIEnvironment

from ..api.problems import PROBLEM_TYPE, internal_error
from ..structured_logging import FaultLog
from .worker_supervisor import NAME

THREADS = 32
CHUNK = 1 << 16
IN_MEMORY = 1 << 20  # bytes of a response
BODY_SECONDS = 10.0  # for each piece of a request's body
ENDPOINT = "response"  # in the log
_PLAIN = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}

Header = tuple[str, str]


class BodyReader(io.RawIOBase):
    """A request's body: its pieces are fetched from the loop as the application reads."""

    def __init__(self, protocol: Any, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._pieces = aiter(protocol)
        self._loop = loop
        self._left = b""

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
        self, application: WSGIApplication, faults: FaultLog, threads: int = THREADS
    ) -> None:
        """Answer by this application, which handles its own errors; `faults` has what is left."""
        self._application = application
        self._faults = faults
        self._pool = ThreadPoolExecutor(threads, "veilcount-request")

    async def respond(self, scope: Any, protocol: Any) -> None:
        """Answer one request."""
        loop = asyncio.get_running_loop()
        environ = _environ(scope) | {
            "wsgi.input": io.BufferedReader(BodyReader(protocol, loop)),
            "wsgi.input_terminated": True,
        }
        try:
            status, headers, body = await loop.run_in_executor(self._pool, self._answer, environ)
        except Exception as error:  # noqa: BLE001 - answered as what it is
            self._break_off(protocol, error)
            return
        with body:
            size = body.seek(0, io.SEEK_END)
            body.seek(0)
            if size <= IN_MEMORY:
                protocol.response_bytes(status, headers, body.read())
                return
            stream = protocol.response_stream(status, [*headers, ("content-length", str(size))])
            while piece := await loop.run_in_executor(self._pool, body.read, CHUNK):
                await stream.send_bytes(piece)

    def _break_off(self, protocol: Any, error: Exception) -> None:
        """Respond in place of a body that broke off: nothing of it was sent."""
        self._faults.log("failed", ENDPOINT, error)
        problem = internal_error()
        headers = {"content-type": PROBLEM_TYPE, **problem.headers, "server": NAME}
        protocol.response_bytes(problem.status, list(headers.items()), problem.body)

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
        kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
        return status, [*kept, ("server", NAME)], body


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
    for name, value in scope.headers.items():
        environ[_PLAIN.get(name) or "HTTP_" + name.upper().replace("-", "_")] = value
    return environ
