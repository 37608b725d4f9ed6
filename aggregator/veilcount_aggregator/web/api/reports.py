"""Endpoint of devices' reports, `POST /v1/reports`: what comes before Flask, and without it.

`ReportsEndpoint` decides and does no I/O: what a request's head is answered with, and what the
outcome of its body is answered with. Between the two the body is read and waits for its group: on
the event loop of a worker (`server.rsgi`), or on a thread of any WSGI server (`WsgiReports`).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from http import HTTPStatus
from random import getrandbits
from typing import Any, NamedTuple
from wsgiref.types import StartResponse, WSGIApplication

from veilcount_serving.errors import Overloaded
from veilcount_serving.group_commit import ANSWER_SECONDS
from veilcount_serving.request_ids import ENVIRON_NAME, RequestIds
from veilcount_serving.structured_logging import FaultLog
from veilcount_shared.errors import BadField, WireError
from veilcount_shared.problem_details import PROBLEM_TYPE, Problem, ProblemError
from veilcount_shared.wire import BINARY_TYPE, JSON_TYPE, MAX_BODY

from ...errors import ClockUntrusted, StoreError, StoreUnavailable
from ...intake.decode import RequestBody, too_large
from ...intake.group_intake import GroupIntake, IntakeRequest
from ...intake.pipeline import IntakeFailed, Outcome
from ...records.api_keys import Role
from ...records.service_counters import REPORTS
from ...store import COUNTED, VERDICTS, Codes
from .auth import Authenticator
from .endpoint import ENDPOINTS, Endpoint
from .problems import internal_error, problem_from_error, refusal
from .request_metrics import RequestMetrics
from .schemas import Verdicts

PATH = "/v1/reports"
SOURCE_CLASS = "X-Veilcount-Source-Class"
_DIGITS = len(str(MAX_BODY))

Environ = dict[str, Any]
Headers = list[tuple[str, str]]

_ALWAYS: Headers = [("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")]
_VERDICTS: Headers = [("Content-Type", JSON_TYPE), *_ALWAYS]


ENDPOINTS.append(
    Endpoint(
        method="POST",
        path=PATH,
        group=REPORTS,
        description="Accept a batch: one verdict per report, once the counted ones are durable."
        f" At most {MAX_BODY:,} bytes in the binary encoding, never compressed; `veilcount encode`"
        " translates a batch from JSON.",
        role=Role.DEVICE,
        other_bodies={BINARY_TYPE: None},
        returns=Verdicts,
        extra_problems=("wrong-length", "unknown-version", "wrong-origin", "incomplete", "busy"),
    )
)


class DeviceResponse(NamedTuple):
    """What a device is answered."""

    status: int
    headers: Headers
    body: bytes

    @classmethod
    def from_problem(cls, problem: Problem) -> DeviceResponse:
        """Return the response that is a problem document."""
        headers = [("Content-Type", PROBLEM_TYPE), *problem.headers.items(), *_ALWAYS]
        return cls(problem.status, headers, problem.body)

    def send(self, start_response: StartResponse) -> list[bytes]:
        """Send it as WSGI wants it: status and headers by a call, and the body as pieces."""
        headers = [*self.headers, ("Content-Length", str(len(self.body)))]
        start_response(f"{self.status} {HTTPStatus(self.status).phrase}", headers)
        return [self.body]


class DeviceProblems:
    """Turns errors of devices' requests into problems; a fault of ours is logged."""

    def __init__(self, faults: FaultLog, ids: RequestIds) -> None:
        self._faults = faults
        self._ids = ids

    def problem(self, endpoint: str, error: Exception, header: str | None) -> Problem:
        """Return what may be said of an error of a request with this header of an id."""
        request = self._ids.choose(header)
        return replace(self._problem(endpoint, error, request), request=request)

    def _problem(self, endpoint: str, error: Exception, request: str) -> Problem:
        if isinstance(error, IntakeFailed):
            error = error.error
        elif isinstance(error, ProblemError | WireError | Overloaded | ClockUntrusted):
            return problem_from_error(error)
        elif isinstance(error, StoreError):
            self._faults.log("store", endpoint, error, reason=str(error), request=request)
            return problem_from_error(error)
        self._faults.log("failed", endpoint, error, request=request)
        return internal_error()


class ReportsEndpoint:
    """Admits requests by their head, and answers them by the outcome of their body."""

    def __init__(
        self,
        authority: Authenticator,
        figures: RequestMetrics,
        problems: DeviceProblems,
        reply: Callable[[Codes], bytes],
    ) -> None:
        self._authority = authority
        self._figures = figures
        self._problems = problems
        self._reply = reply

    def admit(self, method: str, authorization: str, length: str) -> tuple[str, int | None]:
        """Return a request's device key and the announced length of its body, or refuse it."""
        if method != "POST":
            raise refusal("wrong-method", Allow="POST")
        size = _size(length)
        return self._authority.admit_device(authorization), size

    def respond(self, outcome: Outcome, seconds: float, header: str | None) -> DeviceResponse:
        """Return the response to a request that took so long, and count it.

        Only a refused request has an id, of its `header` or a new one: nothing of an accepted
        report could be found by it.
        """
        if isinstance(outcome, Exception):
            response = self._refuse(outcome, header)
        else:
            response = DeviceResponse(200, _VERDICTS, self._reply(outcome))
        self._figures.answered(REPORTS, response.status, seconds)
        return response

    def _refuse(self, error: Exception, header: str | None) -> DeviceResponse:
        problem = self._problems.problem(REPORTS, error, header)
        self._figures.refused(problem.kind.name)
        return DeviceResponse.from_problem(problem)


class WsgiReports:
    """The endpoint on any WSGI server: the thread of a request waits for its group."""

    def __init__(
        self,
        onward: WSGIApplication,
        endpoint: ReportsEndpoint,
        intake: GroupIntake,
        refresh: Callable[[], object],
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """Stand in front of `onward`; `refresh` keeps definitions and keys up to date."""
        self._onward = onward
        self._endpoint = endpoint
        self._intake = intake
        self._refresh = refresh
        self._seconds = seconds

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request; those of other paths are handed on."""
        if environ["PATH_INFO"] != PATH:
            return self._onward(environ, start_response)
        begun = self._seconds()
        try:
            outcome = self._outcome(environ)
        except Exception as error:  # noqa: BLE001 - answered as what it is
            outcome = error
        seconds = self._seconds() - begun
        response = self._endpoint.respond(outcome, seconds, environ.get(ENVIRON_NAME))
        return response.send(start_response)

    def _outcome(self, environ: Environ) -> Outcome:
        self._refresh()
        key, size = self._endpoint.admit(
            environ["REQUEST_METHOD"],
            environ.get("HTTP_AUTHORIZATION", ""),
            environ.get("CONTENT_LENGTH") or "",
        )
        raw = _read(environ, size)
        kind, coding = environ.get("CONTENT_TYPE", ""), environ.get("HTTP_CONTENT_ENCODING", "")
        pending: Future[Outcome] = Future()
        network = environ.get(_SOURCE_CLASS, "")
        self._intake.submit(IntakeRequest(RequestBody(kind, coding, raw), key, network, pending))
        try:
            return pending.result(ANSWER_SECONDS)
        except TimeoutError:
            pending.cancel()
            return unanswered()


_SOURCE_CLASS = "HTTP_" + SOURCE_CLASS.upper().replace("-", "_")
_WORDS = [f'"{verdict}"'.encode() for verdict in VERDICTS]
_ONE = [b'"verdicts":[%b]}' % word for word in _WORDS]
#: of one length, so that the length of an encrypted reply says nothing more
_VALUES = '"unknown"', "[null, 1]", '{"a":1.5}', "-1234.5e6", "123456789"
_MEMBERS = [f'"{secrets.token_hex(4)}":{secrets.choice(_VALUES)}'.encode() for _ in range(256)]
DEVELOPMENT_UNKNOWN = 100


def reply(codes: Codes) -> bytes:
    """Return a reply of these verdicts: its first member is one that no release knows [RFC 8701].

    A client that does not ignore it fails at its first report, not when there is such a member.
    """
    if len(codes) == 1:
        return b"{%b,%b" % (_MEMBERS[getrandbits(8)], _ONE[int(codes[0])])
    return _reply([_WORDS[code] for code in codes.tolist()])


def _reply(words: Sequence[bytes]) -> bytes:
    return b'{%b,"verdicts":[%b]}' % (_MEMBERS[getrandbits(8)], b",".join(words))


class DevelopmentReplies:
    """Replies of `veilcount dev`: of every hundredth counted report the verdict is unknown, too.

    The report was counted, and so is a duplicate when it comes again.
    """

    def __init__(self) -> None:
        self._counted = 0

    def __call__(self, codes: Codes) -> bytes:
        """Return a reply of these verdicts."""
        return _reply([self._word(code) for code in codes.tolist()])

    def _word(self, code: int) -> bytes:
        self._counted += code == COUNTED
        is_last = code == COUNTED and self._counted % DEVELOPMENT_UNKNOWN == 0
        return b'"%b"' % secrets.token_hex(4).encode() if is_last else _WORDS[code]


def unanswered() -> StoreUnavailable:
    """Return the error of a request that has waited for as long as any may."""
    return StoreUnavailable(f"the store has not answered for {ANSWER_SECONDS:g} s")


def _size(length: str) -> int | None:
    """Return the length that was announced, or refuse it unread."""
    if not length:
        return None
    if not (length.isascii() and length.isdigit()):
        raise BadField("Content-Length", "give a whole number")
    if len(length) > _DIGITS or int(length) > MAX_BODY:
        raise too_large()
    return int(length)


def _read(environ: Environ, size: int | None) -> bytes:
    """Return the body. Without a length: up to the limit if the server tells its end, else none."""
    if size is None and not environ.get("wsgi.input_terminated"):
        return b""
    try:
        raw: bytes = environ["wsgi.input"].read(MAX_BODY + 1 if size is None else size)
    except OSError:  # the device went away
        raise refusal("incomplete") from None
    if size is not None and len(raw) < size:
        raise refusal("incomplete")
    if len(raw) > MAX_BODY:
        raise too_large()
    return raw
