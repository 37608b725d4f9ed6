"""Plain requests with reports: a worker's front hands them to the intake, and answers them.

They join the groups of the reports that were passed on or came through a relay.
"""

from __future__ import annotations

from collections.abc import Callable

from veilcount_serving.front_connection import PlainRequest
from veilcount_serving.group_commit import ANSWER_SECONDS
from veilcount_serving.request_ids import HEADER as REQUEST_ID
from veilcount_serving.worker_supervisor import NAME

from ..intake.decode import RequestBody
from ..intake.group_intake import IntakeRequest
from ..intake.pipeline import Outcome
from ..web.api.health import ALIVE_PATH, READY_PATH
from ..web.api.problems import refusal
from ..web.api.reports import PATH, SOURCE_CLASS, ReportsEndpoint, unanswered
from .app import WebApplication

_REQUEST_ID, _SOURCE_CLASS = REQUEST_ID.lower(), SOURCE_CLASS.lower()
_SERVER = ("server", NAME)
_STATUS = tuple(f"GET {path}".encode() for path in (ALIVE_PATH, READY_PATH, "/metrics"))


class PendingReports:
    """A request that waits for its group."""

    __slots__ = ("_endpoint", "_request", "_seconds")

    def __init__(
        self, endpoint: ReportsEndpoint, request: PlainRequest, seconds: Callable[[], float]
    ) -> None:
        self._endpoint, self._request, self._seconds = endpoint, request, seconds

    def done(self) -> bool:
        """Whether nobody waits any more."""
        return self._request.is_answered

    def set_result(self, outcome: Outcome) -> None:
        """Answer the request by its outcome."""
        request = self._request
        header = request.head.fields.get(_REQUEST_ID)
        response = self._endpoint.respond(outcome, self._seconds() - request.begun, header)
        request.answer(response.status, [*response.headers, _SERVER], response.body)


class PlainReports:
    """Takes the plain requests of one worker's front."""

    start = f"POST {PATH} HTTP/1.1\r\n".encode()
    asks_peers = False  # a proxy limits them

    def __init__(
        self, opened: Callable[[], WebApplication | None], seconds: Callable[[], float]
    ) -> None:
        """Take reports for the `opened` application, if it is; `seconds` is the loop's clock."""
        self._opened = opened
        self._seconds = seconds

    def is_own(self, data: bytes) -> bool:
        """Whether a connection begins with what concerns the intake: no page or list does."""
        return not data.startswith(b"GET ") or data.startswith(_STATUS)

    def take(self, request: PlainRequest) -> bool:
        """Take a request for the next group, or refuse it; False: nothing is open to take it."""
        app = self._opened()
        if app is None:
            return False
        fields = request.head.fields
        pending = PendingReports(app.reports, request, self._seconds)
        try:
            key, _ = app.reports.admit("POST", fields.get("authorization", ""), "")
            kind, coding = fields.get("content-type", ""), fields.get("content-encoding", "")
            body = RequestBody(kind, coding, request.body)
            app.intake.submit(IntakeRequest(body, key, fields.get(_SOURCE_CLASS, ""), pending))
        except Exception as error:  # noqa: BLE001 - answered as what it is
            pending.set_result(error)
        return True

    def incomplete(self, request: PlainRequest) -> None:
        """Answer a request whose body did not come."""
        self._refuse(request, refusal("incomplete"))

    def end_overdue(self, request: PlainRequest, now: float) -> None:
        """Answer a request whose group hangs."""
        if now - request.begun > ANSWER_SECONDS:
            self._refuse(request, unanswered())

    def _refuse(self, request: PlainRequest, error: Exception) -> None:
        if (app := self._opened()) is not None:
            PendingReports(app.reports, request, self._seconds).set_result(error)
