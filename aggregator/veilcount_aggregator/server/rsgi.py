"""The application of a worker: devices' reports on its event loop, everything else on threads.

The loop never waits for the store, nor for it to be opened: it reads bodies, hands them to the
intake's thread and answers when their group is durable. Reports that came through a relay join the
same groups, once their requests are opened.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from veilcount_serving.errors import Overloaded
from veilcount_serving.front import Front
from veilcount_serving.group_commit import ANSWER_SECONDS, RETRY_SECONDS
from veilcount_serving.request_ids import HEADER as REQUEST_ID
from veilcount_serving.response_headers import HEADERS
from veilcount_serving.worker_supervisor import NAME
from veilcount_serving.wsgi_threads import WsgiThreads
from veilcount_shared.wire import JSON_TYPE

from ..errors import StoreUnavailable
from ..intake.decode import RequestBody
from ..intake.group_intake import IntakeRequest
from ..intake.pipeline import Outcome
from ..web.api import gateway
from ..web.api.gateway import OpenedRequest, inner_environ
from ..web.api.health import ALIVE, ALIVE_PATH
from ..web.api.problems import problem_from_error, refusal
from ..web.api.reports import PATH, SOURCE_CLASS, DeviceResponse, unanswered
from .app import WebApplication
from .opening_queue import OpeningQueue, SealedRequest
from .plain_reports import PlainReports
from .request_bodies import RequestBodies, RequestProtocol, Waits

SWEEP_SECONDS = 0.25
MOST_LARGE_SEALED_BYTES = 16 << 20  # apart: relayed bodies keep out no direct ones
MOST_ROW_CLOSES = 8  # through the gateway at a time, of the 32 threads
T = TypeVar("T")
Take = Callable[[WebApplication, Any, RequestProtocol], Awaitable[DeviceResponse]]
_SERVER = ("server", NAME)
_NO_HOST = refusal("bad-request", "send a Host header, as HTTP/1.1 requires", "Host").problem
_NOT_OPEN = problem_from_error(StoreUnavailable("it is not open yet"))
_JSON = [("content-type", JSON_TYPE), *HEADERS.items(), _SERVER]


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
        self._bodies = RequestBodies()
        self._sealed_bodies = RequestBodies(MOST_LARGE_SEALED_BYTES)
        self._answers: Waits[asyncio.Future[Any]] = Waits(ANSWER_SECONDS)
        self._row_closes: set[asyncio.Task[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.plain = PlainReports(opened, seconds)
        self.front: Front | None = None

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._sealed = OpeningQueue(loop.call_soon, self._seconds)
        loop.call_later(SWEEP_SECONDS, self._sweep)
        if self.front is not None:
            self.front.open(loop)

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.front is not None:
            loop.run_until_complete(self.front.close())

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        path = scope.path
        if scope.http_version == "1.1" and _host(scope) is None:
            self._threads.respond_problem(scope, protocol, _NO_HOST)
        elif path == PATH:
            await self._answer_device(self._take, scope, protocol)
        elif path == gateway.PATH:
            await self._answer_device(self._take_sealed, scope, protocol)
        elif path == ALIVE_PATH and scope.method == "GET":
            protocol.response_bytes(200, _JSON, ALIVE)
        else:
            await self._threads.respond(scope, protocol)

    async def _answer_device(self, take: Take, scope: Any, protocol: RequestProtocol) -> None:
        app = self._opened()
        if app is None:
            self._threads.respond_problem(scope, protocol, _NOT_OPEN)
        elif (origin := scope.headers.get("origin")) is None:
            _respond(protocol, await take(app, scope, protocol))
        else:
            answer = app.pages.answer(scope.method, origin, scope.headers.get(REQUEST_ID))
            response = answer or await take(app, scope, protocol)
            _respond(protocol, app.pages.shown(response, scope.method, origin))

    # -- reports -----------------------------------------------------------------------------------

    async def _take(
        self, app: WebApplication, scope: Any, protocol: RequestProtocol
    ) -> DeviceResponse:
        return await self._response(app, scope, self._direct_outcome(app, scope, protocol))

    async def _response(
        self, app: WebApplication, scope: Any, outcome: Awaitable[Outcome]
    ) -> DeviceResponse:
        """Return the response of the endpoint of reports to an outcome, once it is there."""
        begun = self._seconds()
        try:
            result = await outcome
        except Exception as error:  # noqa: BLE001 - answered as what it is
            # Kept in a local, it and this frame would keep each other, and with them the body.
            return self._reports_response(app, scope, error, begun)
        return self._reports_response(app, scope, result, begun)

    def _reports_response(
        self, app: WebApplication, scope: Any, result: Outcome, begun: float
    ) -> DeviceResponse:
        header = scope.headers.get(REQUEST_ID) if isinstance(result, Exception) else None
        return app.reports.respond(result, self._seconds() - begun, header)

    async def _direct_outcome(
        self, app: WebApplication, scope: Any, protocol: RequestProtocol
    ) -> Outcome:
        header = scope.headers.get
        key, size = app.reports.admit(
            scope.method, header("authorization") or "", header("content-length") or ""
        )
        raw = await self._bodies.read(protocol, size, self._seconds())
        body = RequestBody(header("content-type") or "", header("content-encoding") or "", raw)
        return await self._outcome(app, body, key, header(SOURCE_CLASS) or "")

    async def _outcome(
        self, app: WebApplication, body: RequestBody, key: str, network: str
    ) -> Outcome:
        """Return the outcome of a body, once its group is durable or it has waited too long."""
        pending: asyncio.Future[Outcome] = self._future()
        app.intake.submit(IntakeRequest(body, key, network, pending))
        return await self._answer(pending)

    # -- requests that came through a relay --------------------------------------------------------

    async def _take_sealed(
        self, app: WebApplication, scope: Any, protocol: RequestProtocol
    ) -> DeviceResponse:
        try:
            opened = await self._opened_request(app, scope, protocol)
        except Exception as error:  # noqa: BLE001 - answered as what it is
            return app.gateway.refuse(error, scope.headers.get(REQUEST_ID))
        return app.gateway.seal(opened, await self._serve(app, scope, opened))

    async def _opened_request(
        self, app: WebApplication, scope: Any, protocol: RequestProtocol
    ) -> OpenedRequest:
        header = scope.headers.get
        size = app.gateway.admit(
            scope.method, header("content-type") or "", header("content-length") or ""
        )
        sealed = await self._sealed_bodies.read(protocol, size, self._seconds(), limit=size)
        pending: asyncio.Future[OpenedRequest] = self._future()
        self._sealed.submit(SealedRequest(app.gateway.open, sealed, pending))
        return await self._answer(pending)

    async def _serve(
        self, app: WebApplication, scope: Any, opened: OpenedRequest
    ) -> DeviceResponse:
        """Return the response of the device's endpoint that a request is for."""
        if opened.is_reports:
            return await self._response(app, scope, self._relayed_outcome(app, opened))
        if not opened.is_row_close:
            return app.gateway.refuse_endpoint()
        try:
            return await self._close_row(opened)
        except Exception as error:  # noqa: BLE001 - answered as what it is
            return app.gateway.refuse_inside(error, scope.headers.get(REQUEST_ID))

    async def _relayed_outcome(self, app: WebApplication, opened: OpenedRequest) -> Outcome:
        content = opened.request.content
        key, _ = app.reports.admit("POST", opened.header("authorization"), str(len(content)))
        body = RequestBody(opened.header("content-type"), "", content)
        return await self._outcome(app, body, key, "")

    async def _close_row(self, opened: OpenedRequest) -> DeviceResponse:
        """Return the response to a row-close request, which waits for the store on a thread."""
        if len(self._row_closes) >= MOST_ROW_CLOSES:
            raise Overloaded(RETRY_SECONDS, "other rows are being closed: retry in a moment")
        closing = asyncio.ensure_future(self._threads.call(inner_environ(opened)))
        self._row_closes.add(closing)
        closing.add_done_callback(self._forget_row_close)
        done, _ = await asyncio.wait([closing], timeout=ANSWER_SECONDS)
        if not done:
            raise unanswered()
        return DeviceResponse(*closing.result())

    def _forget_row_close(self, closing: asyncio.Task[Any]) -> None:
        self._row_closes.discard(closing)
        if not closing.cancelled():
            closing.exception()  # of one that nobody waits for any more: asyncio would log it

    # -- waiting -----------------------------------------------------------------------------------

    def _future(self) -> asyncio.Future[Any]:
        assert self._loop is not None  # noqa: S101 - it runs on it
        return self._loop.create_future()

    async def _answer(self, pending: asyncio.Future[T]) -> T:
        """Return what a future is set to; the error of the store if that takes too long."""
        self._answers.begin(pending, self._seconds())
        try:
            return await pending
        finally:
            self._answers.end(pending)

    def _sweep(self) -> None:
        now = self._seconds()
        self._bodies.end_overdue(now)
        self._sealed_bodies.end_overdue(now)
        for pending in self._answers.overdue(now):
            if not pending.done():
                pending.set_exception(unanswered())
        assert self._loop is not None  # noqa: S101 - it runs on it
        self._loop.call_later(SWEEP_SECONDS, self._sweep)


def _host(scope: Any) -> str | None:
    """Return the host that a request names; None: it names none, as HTTP/1.1 requires."""
    host: str | None = scope.headers.get("host")
    return scope.authority if host is None else host


def _respond(protocol: RequestProtocol, response: DeviceResponse) -> None:
    status, headers, body = response
    protocol.response_bytes(status, [*headers, _SERVER], body)
