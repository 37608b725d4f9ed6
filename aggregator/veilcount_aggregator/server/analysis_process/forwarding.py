"""Forwards a worker's requests to the analysis process, except those of devices and probes.

A worker has 32 threads. At most a dozen wait for the analysis process, so that the others remain
for the intake. If the process is down, busy or too slow, the response is 503.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from veilcount_serving.errors import Overloaded
from veilcount_serving.request_ids import ENVIRON_NAME, OWN_IDS, RequestIds
from veilcount_serving.response_headers import HEADERS
from veilcount_shared.problem_details import PROBLEM_TYPE, RETRY_SECONDS

from ...web.api.computation_gate import Permit
from ...web.api.problems import problem_from_error
from .frames import CHUNK, BrokenChannel, Channel, Kind

MOST_WAITING = 12  # requests of one worker at a time, of its 32 threads
ACCEPT_SECONDS = 10.0  # for a thread to take the request: a process that was just started, too
ANSWER_SECONDS = 60.0  # for the head of the response, and for each further piece
PROBE_SECONDS = 2.0
TRIES = 2
SAFE = frozenset({"GET", "HEAD"})

#: paths that a worker serves itself: of devices and probes, and static assets
LOCAL_PATHS = frozenset(
    {
        *("/v1/reports", "/v1/rows/close", "/v1/ohttp-keys"),
        *("/healthz", "/readyz", "/metrics"),
    }
)
LOCAL_PREFIX = "/assets/"

_PASSED = frozenset(
    {
        *("REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "CONTENT_TYPE"),
        *("CONTENT_LENGTH", "SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL"),
        *("wsgi.url_scheme", "wsgi.input_terminated"),
    }
)
BUSY, DOWN, SLOW = "busy", "down", "slow"
_WHY = {
    BUSY: "other queries are being computed: retry in a moment",
    DOWN: "the analysis process is restarting: retry in a moment",
    SLOW: f"no answer within {ANSWER_SECONDS:g} s: ask for fewer values, days or series",
}


def is_local(path: str) -> bool:
    """Whether a worker serves a path itself."""
    return path in LOCAL_PATHS or path.startswith(LOCAL_PREFIX)


class ResponseTimeout(BrokenChannel):
    """The analysis process accepted a request, and did not respond in time."""


class Forwarder:
    """A WSGI application in front of a worker's own."""

    def __init__(
        self,
        onward: WSGIApplication,
        address: str,
        *,
        changed: Callable[[], None] = lambda: None,
        refused: Callable[[str], None] = lambda _: None,
        ids: RequestIds = OWN_IDS,
    ) -> None:
        """Forward to the socket at `address`; `changed` is called after a request that changed
        something, `refused` with the reason of each 503.
        """
        self._ids = ids
        self._onward = onward
        self._address = address
        self._changed = changed
        self._refused = refused
        self._permits = threading.BoundedSemaphore(MOST_WAITING)

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Respond to one request."""
        if is_local(environ["PATH_INFO"]):
            return self._onward(environ, start)
        if not self._permits.acquire(blocking=False):
            return self._refuse(BUSY, environ, start)
        try:
            exchange = self._open(environ, Permit(self._permits.release))
            status, headers = exchange.head(environ)
            body = exchange.body()
        except ResponseTimeout:
            return self._refuse(SLOW, environ, start)
        except BrokenChannel:
            return self._refuse(DOWN, environ, start)
        if environ["REQUEST_METHOD"] not in SAFE and status < "4":
            self._changed()
        start(status, headers)
        return body

    def is_up(self) -> bool:
        """Whether the analysis process responds to a probe."""
        probe = {"REQUEST_METHOD": "GET", "PATH_INFO": "/healthz", "wsgi.url_scheme": "http"}
        probe |= {"SERVER_NAME": "analysis", "SERVER_PORT": "0", "SERVER_PROTOCOL": "HTTP/1.1"}
        try:
            with closing(self._open(probe, Permit(lambda: None), PROBE_SECONDS)) as exchange:
                status, _ = exchange.head(probe)
        except BrokenChannel:
            return False
        return status.startswith("200")

    def _open(
        self, environ: WSGIEnvironment, permit: Permit, timeout: float | None = None
    ) -> Exchange:
        """Return an accepted exchange, after a retry if the connection was closed before: a process
        that ends closes connections in its backlog.
        """
        for _ in range(TRIES):
            channel = connect(self._address)
            if is_accepted(channel, environ, timeout or ACCEPT_SECONDS):
                return Exchange(channel, permit, timeout or ANSWER_SECONDS)
        raise BrokenChannel("not accepted")

    def _refuse(
        self, reason: str, environ: WSGIEnvironment, start: StartResponse
    ) -> Iterable[bytes]:
        self._refused(reason)
        name = self._ids.choose(environ.get(ENVIRON_NAME))
        error = Overloaded(RETRY_SECONDS, _WHY[reason])
        problem = replace(problem_from_error(error), request=name)
        kind = problem.kind.status
        headers = {**HEADERS, **problem.headers, "Content-Length": str(len(problem.body))}
        start(f"{kind.value} {kind.phrase}", [("Content-Type", PROBLEM_TYPE), *headers.items()])
        return [problem.body]


def connect(address: str) -> Channel:
    """Return a new connection to the analysis process."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(ACCEPT_SECONDS)
        connection.connect(address)
    except OSError as error:
        connection.close()
        raise BrokenChannel("the analysis process does not listen") from error
    return Channel(connection)


def is_accepted(channel: Channel, environ: WSGIEnvironment, seconds: float) -> bool:
    """Send a request without its body; return whether it was accepted. A timeout raises."""
    channel.set_timeout(seconds)
    try:
        channel.send_json(Kind.REQUEST, dict(_passed(environ)))
        channel.expect(Kind.ACCEPTED)
    except BrokenChannel as error:
        channel.close()
        if isinstance(error.__cause__, TimeoutError):
            raise
        return False
    return True


class Exchange:
    """One request and its response, as an iterable of the response's body."""

    def __init__(self, channel: Channel, permit: Permit, seconds: float) -> None:
        """Use an accepted channel; time out after so many seconds of silence."""
        self._channel = channel
        self._permit = permit
        channel.set_timeout(seconds)

    def head(self, environ: WSGIEnvironment) -> tuple[str, list[tuple[str, str]]]:
        """Return the status and the headers of the response."""
        try:
            return self._head(environ)
        except BrokenChannel as error:
            self.close()
            if isinstance(error.__cause__, TimeoutError):
                raise ResponseTimeout("no answer in time") from error
            raise

    def body(self) -> Iterable[bytes]:
        """Return the body: a list if it is short, else a stream."""
        first, size = list[bytes](), 0
        for piece in self:
            first.append(piece)
            size += len(piece)
            if size > CHUNK:
                return self._stream(first)
        return [b"".join(first)]

    def _stream(self, first: list[bytes]) -> Iterator[bytes]:
        """Yield a long body. A truncated one raises, so that it is not taken for complete."""
        with closing(self):
            yield from first
            yield from self

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            kind, payload = self._channel.receive()
        except BrokenChannel:
            self.close()
            raise
        if kind is Kind.BODY:
            return payload
        self.close()
        if kind is Kind.END:
            raise StopIteration
        raise BrokenChannel(f"{kind.name} within a body")

    def close(self) -> None:
        """Close the connection, and release the permit."""
        self._channel.close()
        self._permit.release()

    def __del__(self) -> None:
        self.close()

    def _head(self, environ: WSGIEnvironment) -> tuple[str, list[tuple[str, str]]]:
        while True:
            kind, payload = self._channel.receive()
            if kind is Kind.READ:
                self._give(environ["wsgi.input"], int(payload))
            elif kind is Kind.HEAD:
                status, headers = json.loads(payload)
                return status, [(name, value) for name, value in headers]
            else:
                raise BrokenChannel(f"{kind.name} before a head")

    def _give(self, body: Any, size: int) -> None:
        """Send the next part of the request's body, without a timeout on its sender."""
        try:
            piece = body.read(min(size, CHUNK))
        except OSError:
            self._channel.send(Kind.GONE)
        else:
            self._channel.send(Kind.DATA, piece)


def _passed(environ: WSGIEnvironment) -> Iterator[tuple[str, object]]:
    """Yield the forwarded variables: no client address, none of our own."""
    for name, value in environ.items():
        if name in _PASSED or (name.startswith("HTTP_") and isinstance(value, str)):
            yield name, value
