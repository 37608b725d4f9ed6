"""Has views computed by the pool, from the threads of an HTTP worker.

A worker has 32 threads. At most a dozen wait for the pool, so that the others remain for devices
and administrators. A pool that is busy, down or too slow is 503.
"""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from flask import Response, request
from werkzeug.wsgi import FileWrapper

from veilcount_serving.errors import Overloaded
from veilcount_shared.problem_details import RETRY_SECONDS

from ...web.api.request_metrics import COMPUTING
from .messages import END, PooledRequest, receive_head, send

MOST_WAITING = 12  # requests of one worker at a time, of its 32 threads
ACCEPT_SECONDS = 10.0  # for a process to take the request: one that was just started, too
ANSWER_SECONDS = 60.0
IN_MEMORY = 1 << 20  # bytes of a response; a longer one is kept in a temporary file
FIRST_ERROR = 400
SAFE = frozenset({"GET", "HEAD"})

BUSY, DOWN, SLOW = "busy", "down", "slow"
_REASONS = {
    BUSY: "other queries are being computed: retry in a moment",
    COMPUTING: "other queries are being computed: retry in a moment",
    DOWN: "the process that computed this ended: retry in a moment",
    SLOW: f"no answer within {ANSWER_SECONDS:g} s: ask for fewer values, days or series",
}


class PoolRefusal(Exception):
    """The pool gives no response, for one of the reasons above."""


class PooledComputations:
    """Views that compute, in the pool's processes instead of here. For any thread."""

    def __init__(
        self,
        address: str,
        *,
        changed: Callable[[], None] = lambda: None,
        refused: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Use the pool at `address`; `changed` is called after a request that changed something,
        `refused` with the reason of each 503.
        """
        self._address, self._changed, self._refused = address, changed, refused
        self._permits = threading.BoundedSemaphore(MOST_WAITING)

    def bounded(self, _: Callable[..., Any]) -> Callable[..., Any]:
        """Return what has the pool respond to the current request, in place of its view."""
        return self._respond

    def _respond(self, *_: object, **__: object) -> Response:
        try:
            response = self._ask(PooledRequest.of(request))
        except PoolRefusal as refusal:
            (reason,) = refusal.args
            self._refused(reason)
            raise Overloaded(RETRY_SECONDS, _REASONS[reason]) from refusal
        if request.method not in SAFE and response.status_code < FIRST_ERROR:
            self._changed()
        return response

    def _ask(self, message: PooledRequest) -> Response:
        if not self._permits.acquire(blocking=False):
            raise PoolRefusal(BUSY)
        try:
            with connect(self._address) as connection:
                _wait(connection, ACCEPT_SECONDS, COMPUTING)
                connection.recv_bytes()
                send(connection, message)
                _wait(connection, ANSWER_SECONDS, SLOW)
                return _receive(connection)
        except (OSError, EOFError) as error:
            raise PoolRefusal(DOWN) from error
        finally:
            self._permits.release()


def connect(address: str) -> Connection:
    """Return a new connection, which waits for a process of the pool."""
    with socket.socket(socket.AF_UNIX) as waiting:
        waiting.settimeout(ACCEPT_SECONDS)
        waiting.connect(address)
        waiting.settimeout(None)
        return Connection(waiting.detach())


def _receive(connection: Connection) -> Response:
    """Return the whole response: one that breaks off is none."""
    head = receive_head(connection)
    body = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - a long one is closed later
    try:
        while (piece := _next(connection)) != END:
            body.write(piece)
    except BaseException:
        body.close()
        raise
    size = body.tell()
    body.seek(0)
    if size > IN_MEMORY:
        response = Response(FileWrapper(body), head.status, head.headers, direct_passthrough=True)
        response.call_on_close(body.close)
        return response
    with body:
        return Response([body.read()], head.status, head.headers)


def _next(connection: Connection) -> bytes:
    _wait(connection, ANSWER_SECONDS, SLOW)
    return connection.recv_bytes()


def _wait(connection: Connection, seconds: float, reason: str) -> None:
    if not connection.poll(seconds):
        raise PoolRefusal(reason)
