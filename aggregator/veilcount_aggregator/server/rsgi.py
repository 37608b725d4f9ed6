"""The application of a worker: devices' reports on its event loop, everything else on threads.

The loop never waits for the store, nor for it to be opened: it reads bodies, hands them to the
intake's thread and answers when their group is durable. A body that never comes costs its
connection some 40 kilobytes until its deadline (`./dev bench stalls`), and no thread; large ones
share a budget.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

from veilcount_shared.wire import JSON_TYPE, MAX_BODY

from ..api.health import ALIVE, ALIVE_PATH
from ..api.problems import problem_from_error, refusal
from ..api.reports import PATH, SOURCE_CLASS, unanswered
from ..errors import Overloaded, StoreUnavailable
from ..ingest.decode import RequestBody, too_large
from ..ingest.group_intake import (
    ANSWER_SECONDS,
    RETRY_SECONDS,
    IntakeRequest,
    Settled,
    settle_all,
)
from ..ingest.pipeline import Outcome
from ..response_headers import HEADERS
from .app import WebApplication
from .worker_supervisor import NAME
from .wsgi_threads import WsgiThreads, respond_problem

BODY_SECONDS = 10.0  # until a body has come as a whole
SWEEP_SECONDS = 0.25
SMALL_BODY = 16 << 10  # as devices send them: their number is that of connections
MOST_LARGE_BYTES = 32 << 20
_SERVER = ("server", NAME)
_JSON = [("content-type", JSON_TYPE), *HEADERS.items(), _SERVER]


T = TypeVar("T")


class RequestProtocol(Protocol):
    """A request's body and its response, as RSGI has them."""

    async def __call__(self) -> bytes:
        """Return the body."""

    def __aiter__(self) -> Any:
        """Return the pieces of the body."""

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Respond."""


class Waits(Generic[T]):
    """What waits, oldest first, and since when; what waits for too long is looked for now and then.

    A timer for each would cost a loop about as much as it does for a request otherwise.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: dict[T, float] = {}

    def begin(self, waiting: T, now: float) -> None:
        """Add what waits from now on."""
        self._since[waiting] = now

    def end(self, waiting: T) -> bool:
        """Remove it; return whether it was still there."""
        return self._since.pop(waiting, None) is not None

    def overdue(self, now: float) -> Iterator[T]:
        """Remove and yield what has waited for too long."""
        while self._since:
            waiting, since = next(iter(self._since.items()))
            if since + self._seconds > now:
                return
            del self._since[waiting]
            yield waiting


class LargeBodies:
    """A budget of bytes for large bodies that are being read.

    A body takes of it what has come: one that is announced and does not come costs others nothing.
    """

    def __init__(self, most: int = MOST_LARGE_BYTES) -> None:
        self._left = most

    async def read(self, protocol: RequestProtocol) -> bytes:
        """Return a body, as far as it is within the limit; Overloaded: others have the budget."""
        body = bytearray()
        try:
            async for piece in protocol:
                body += piece
                self._left -= len(piece)
                if len(body) > MAX_BODY:
                    raise too_large()
                if self._left < 0:
                    raise Overloaded(RETRY_SECONDS, "too many large bodies are being read already")
            return bytes(body)
        finally:
            self._left += len(body)


class RsgiApplication:
    """One worker's application, which Granian calls by `__rsgi__`."""

    def __init__(
        self,
        opened: Callable[[], WebApplication | None],
        threads: WsgiThreads,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take reports for the `opened` application, if it is; `threads` has all other requests."""
        self._opened = opened
        self._threads = threads
        self._seconds = seconds
        self._large = LargeBodies()
        self._bodies: Waits[asyncio.Task[object]] = Waits(BODY_SECONDS)
        self._answers: Waits[asyncio.Future[Outcome]] = Waits(ANSWER_SECONDS)
        self._loop: asyncio.AbstractEventLoop | None = None

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        loop.call_later(SWEEP_SECONDS, self._sweep)

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        path = scope.path
        if path == PATH:
            await self._take(scope, protocol)
        elif path == ALIVE_PATH and scope.method == "GET":
            protocol.response_bytes(200, _JSON, ALIVE)
        else:
            await self._threads.respond(scope, protocol)

    async def _take(self, scope: Any, protocol: RequestProtocol) -> None:
        app, begun = self._opened(), self._seconds()
        if app is None:
            respond_problem(protocol, problem_from_error(StoreUnavailable("it is not open yet")))
            return
        try:
            outcome = await self._outcome(app, scope, protocol)
            response = app.reports.respond(outcome, self._seconds() - begun)
        except Exception as error:  # noqa: BLE001 - answered as what it is
            response = app.reports.respond(error, self._seconds() - begun)
        status, headers, body = response
        protocol.response_bytes(status, [*headers, _SERVER], body)

    async def _outcome(self, app: WebApplication, scope: Any, protocol: RequestProtocol) -> Outcome:
        header = scope.headers.get
        key, size = app.reports.admit(
            scope.method, header("authorization") or "", header("content-length") or ""
        )
        raw = await self._body(protocol, size)
        body = RequestBody(header("content-type") or "", header("content-encoding") or "", raw)
        assert self._loop is not None  # noqa: S101 - it runs on it
        pending: asyncio.Future[Outcome] = self._loop.create_future()
        app.intake.submit(IntakeRequest(body, key, header(SOURCE_CLASS) or "", pending))
        self._answers.begin(pending, self._seconds())
        outcome = await pending
        self._answers.end(pending)
        return outcome

    async def _body(self, protocol: RequestProtocol, size: int | None) -> bytes:
        """Return the body; refuse one that is too large, or does not come in time."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - each request is one
        self._bodies.begin(task, self._seconds())
        is_small = size is not None and size <= SMALL_BODY
        try:
            raw = await (protocol() if is_small else self._large.read(protocol))
        except asyncio.CancelledError:
            if self._bodies.end(task):
                raise
            task.uncancel()
            raise refusal("incomplete") from None
        except RuntimeError:  # the device went away
            raise refusal("incomplete") from None
        finally:
            self._bodies.end(task)
        if size is not None and len(raw) < size:
            raise refusal("incomplete")
        return raw

    def deliver(self, settled: Settled) -> None:
        """Tell outcomes to requests of the loop, from the intake's thread."""
        assert self._loop is not None  # noqa: S101 - there are no requests without it
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            self._loop.call_soon_threadsafe(settle_all, settled)

    def _sweep(self) -> None:
        now = self._seconds()
        for task in self._bodies.overdue(now):
            task.cancel()
        for pending in self._answers.overdue(now):
            if not pending.done():
                pending.set_result(unanswered())
        assert self._loop is not None  # noqa: S101 - it runs on it
        self._loop.call_later(SWEEP_SECONDS, self._sweep)
