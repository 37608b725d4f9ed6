"""`POST /v1/envelopes`, on a worker's event loop: answered once the group is durable.

A request leaves no line in a log, and no address anywhere: its network's limit is in memory. Of its
answer one is added to a day's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from veilcount_serving.errors import Overloaded
from veilcount_serving.group_commit import ANSWER_SECONDS, GroupCommit, settle
from veilcount_serving.response_headers import HEADERS
from veilcount_serving.structured_logging import FaultLog
from veilcount_serving.worker_supervisor import NAME
from veilcount_shared.errors import UnknownVersion, WireError
from veilcount_shared.problem_details import PROBLEM_TYPE, Problem, ProblemError
from veilcount_shared.shuffling.envelope import ENVELOPE_TYPE, MAX_SEALED, Envelope
from veilcount_shared.wire import JSON_TYPE

from .envelope_figures import EnvelopeFigures
from .holding import EnvelopeAnswer, Holding
from .network_limit import NetworkLimit, sender
from .problems import problem

ENVELOPES_PATH, LIVE_PATH, READY_PATH = "/v1/envelopes", "/health/live", "/health/ready"
METRICS_PATH = "/metrics"
MAX_BODY = MAX_SEALED + 64
BODY_SECONDS = 10.0
ENDPOINT = "envelopes"
_JSON = [("content-type", JSON_TYPE), *HEADERS.items(), ("server", NAME)]
_TEXT = [("content-type", "text/plain; charset=utf-8"), *HEADERS.items(), ("server", NAME)]
_HELD = b'{"state":"held"}'


@dataclass(frozen=True, slots=True, eq=False)
class EnvelopeRequest:
    """An envelope that waits for its group."""

    envelope: Envelope
    pending: asyncio.Future[EnvelopeAnswer]

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.envelope.sealed)

    content = size  # its padding is sealed, too


class EnvelopesEndpoint:
    """One worker's application, which Granian calls by `__rsgi__`."""

    def __init__(
        self,
        holding: Holding,
        limit: NetworkLimit,
        faults: FaultLog,
        has_space: Callable[[], bool],
        *,
        figures: EnvelopeFigures,
        exposition: Callable[[], str],
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """Hold envelopes; without room on the disk they have to come back."""
        self._limit = limit
        self._faults = faults
        self._has_space = has_space
        self._figures = figures
        self._exposition = exposition
        self._loop: asyncio.AbstractEventLoop | None = None
        self._groups: GroupCommit[EnvelopeRequest, EnvelopeAnswer] = GroupCommit(
            lambda requests: holding.hold([request.envelope for request in requests]),
            self._failed,
            self._deliver,
            seconds=seconds,
        )

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        if scope.path == ENVELOPES_PATH:
            try:
                answer = (await self._take(scope, protocol)).value
            except ProblemError as error:
                self._figures.count(error.problem.kind.name)
                _respond_problem(protocol, error.problem)
                return
            self._figures.count(answer)
            _respond(protocol, answer)
        elif scope.path == METRICS_PATH:
            await self._respond_metrics(protocol)
        elif scope.path == LIVE_PATH:
            protocol.response_bytes(200, _JSON, b'{"status":"ok"}')
        elif scope.path == READY_PATH:
            is_ready = self._has_space()
            body = b'{"ready":true}' if is_ready else b'{"ready":false}'
            protocol.response_bytes(200 if is_ready else 503, _JSON, body)
        else:
            _respond_problem(protocol, problem("not-found"))

    async def _take(self, scope: Any, protocol: Any) -> EnvelopeAnswer:
        _check_head(scope)
        headers = scope.headers
        address = sender(scope.client, headers.get("x-forwarded-for") or "")
        if seconds := self._limit.wait(address):
            raise ProblemError(problem("too-many", seconds=seconds))
        if not self._has_space():
            raise ProblemError(problem("unavailable"))
        envelope = _decode(await _body(protocol))
        assert self._loop is not None  # noqa: S101 - it runs on it
        pending: asyncio.Future[EnvelopeAnswer] = self._loop.create_future()
        try:
            self._groups.submit(EnvelopeRequest(envelope, pending))
            async with asyncio.timeout(ANSWER_SECONDS):
                return await pending
        except (Overloaded, TimeoutError):
            raise ProblemError(problem("unavailable")) from None

    async def _respond_metrics(self, protocol: Any) -> None:
        try:
            body = await asyncio.to_thread(self._exposition)
        except Exception as error:  # noqa: BLE001 - the server goes on
            self._faults.log("failed", "metrics", error)
            _respond_problem(protocol, problem("unavailable"))
        else:
            protocol.response_bytes(200, _TEXT, body.encode())

    def _failed(self, error: Exception) -> EnvelopeAnswer:
        self._faults.log("failed", ENDPOINT, error)
        return EnvelopeAnswer.UNAVAILABLE

    def _deliver(self, settled: Sequence[tuple[EnvelopeRequest, EnvelopeAnswer]]) -> None:
        """Bring answers to the loop, from the thread of the groups."""
        assert self._loop is not None  # noqa: S101 - there are no requests without it
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            self._loop.call_soon_threadsafe(_settle_all, settled)


def _settle_all(settled: Sequence[tuple[EnvelopeRequest, EnvelopeAnswer]]) -> None:
    for request, answer in settled:
        settle(request.pending, answer)


def _check_head(scope: Any) -> None:
    if scope.method != "POST":
        raise ProblemError(problem("wrong-method"))
    if (scope.headers.get("content-type") or "").lower() != ENVELOPE_TYPE:
        raise ProblemError(problem("unsupported"))
    size = scope.headers.get("content-length") or ""
    if not size.isdecimal() or int(size[:9]) > MAX_BODY or len(size) > len("99999"):
        raise ProblemError(problem("too-large"))


async def _body(protocol: Any) -> bytes:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return bytes(await protocol())
    except (TimeoutError, RuntimeError):  # it does not come, or its sender went away
        raise ProblemError(problem("incomplete")) from None


def _decode(raw: bytes) -> Envelope:
    try:
        return Envelope.decode(raw)
    except UnknownVersion:
        raise ProblemError(problem("unknown-version")) from None
    except WireError as error:
        raise ProblemError(problem("bad-field", str(error))) from None


def _respond(protocol: Any, answer: str) -> None:
    if answer == EnvelopeAnswer.HELD:
        protocol.response_bytes(202, _JSON, _HELD)
    else:
        _respond_problem(protocol, problem(answer))


def _respond_problem(protocol: Any, refusal: Problem) -> None:
    headers = {"content-type": PROBLEM_TYPE, **HEADERS, **refusal.headers, "server": NAME}
    protocol.response_bytes(refusal.status, list(headers.items()), refusal.body)
