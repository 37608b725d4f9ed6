"""The application of a shuffler's worker, on its event loop: envelopes, and what operators ask.

Plain envelopes are taken by the worker's front (`plain_envelopes`); here is all that it passes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from veilcount_serving.front import Front
from veilcount_serving.group_commit import ANSWER_SECONDS
from veilcount_serving.plain_head import FORWARDED_FOR
from veilcount_serving.response_headers import HEADERS
from veilcount_serving.structured_logging import FaultLog
from veilcount_serving.worker_supervisor import NAME
from veilcount_shared.problem_details import ProblemError

from .envelope_intake import JSON_HEADERS, EnvelopeIntake, EnvelopeResponse, Outcome
from .plain_envelopes import ENVELOPES_PATH, PlainEnvelopes
from .problems import problem

LIVE_PATH, READY_PATH = "/health/live", "/health/ready"
METRICS_PATH = "/metrics"
BODY_SECONDS = 10.0
_TEXT = [("content-type", "text/plain; charset=utf-8"), *HEADERS.items(), ("server", NAME)]
_FIELDS = ("content-type", "content-length", FORWARDED_FOR)


class EnvelopesEndpoint:
    """One worker's application, which Granian calls by `__rsgi__`."""

    def __init__(
        self, intake: EnvelopeIntake, faults: FaultLog, exposition: Callable[[], str]
    ) -> None:
        """Have envelopes held by `intake`; `exposition` is the text of the metrics."""
        self._intake = intake
        self._faults = faults
        self._exposition = exposition
        self.plain = PlainEnvelopes(intake)
        self.front: Front | None = None

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.front is not None:
            self.front.open(loop)

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.front is not None:
            loop.run_until_complete(self.front.close())

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        if scope.path == ENVELOPES_PATH:
            try:
                outcome = await self._take(scope, protocol)
            except ProblemError as error:
                outcome = error
            protocol.response_bytes(*self._intake.respond(outcome))
        elif scope.path == METRICS_PATH:
            await self._respond_metrics(protocol)
        elif scope.path == LIVE_PATH:
            protocol.response_bytes(200, JSON_HEADERS, b'{"status":"ok"}')
        elif scope.path == READY_PATH:
            is_ready = self._intake.has_space()
            body = b'{"ready":true}' if is_ready else b'{"ready":false}'
            protocol.response_bytes(200 if is_ready else 503, JSON_HEADERS, body)
        else:
            _respond_problem(protocol, "not-found")

    async def _take(self, scope: Any, protocol: Any) -> Outcome:
        if scope.method != "POST":
            raise ProblemError(problem("wrong-method"))
        fields = {name: ",".join(scope.headers.get_all(name)) for name in _FIELDS}
        peer = scope.client if self.front is None else self.front.peer(scope.client)
        self._intake.admit(fields, peer)
        raw = await _body(protocol)
        pending: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._intake.submit(raw, pending)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await pending
        except TimeoutError:
            raise ProblemError(problem("unavailable")) from None

    async def _respond_metrics(self, protocol: Any) -> None:
        try:
            body = await asyncio.to_thread(self._exposition)
        except Exception as error:  # noqa: BLE001 - the server goes on
            self._faults.log("failed", "metrics", error)
            _respond_problem(protocol, "unavailable")
        else:
            protocol.response_bytes(200, _TEXT, body.encode())


async def _body(protocol: Any) -> bytes:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return bytes(await protocol())
    except (TimeoutError, RuntimeError):  # it does not come, or its sender went away
        raise ProblemError(problem("incomplete")) from None


def _respond_problem(protocol: Any, name: str) -> None:
    protocol.response_bytes(*EnvelopeResponse.from_problem(problem(name)))
