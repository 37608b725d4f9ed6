"""Requests of web pages for what devices call: those of listed origins are as any device's."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication

from veilcount_serving.origins import AllowedOrigins
from veilcount_serving.request_ids import ENVIRON_NAME
from veilcount_shared.problem_details import ProblemError

from .gateway import PATH as GATEWAY_PATH
from .reports import PATH as REPORTS_PATH
from .reports import DeviceResponse, Environ, ReportsEndpoint

PATHS = frozenset({REPORTS_PATH, GATEWAY_PATH})


class CrossOriginRequests:
    """Answers what a browser asks first, and pages that are not listed."""

    def __init__(self, origins: AllowedOrigins, reports: ReportsEndpoint) -> None:
        self._origins, self._reports = origins, reports

    def answer(self, method: str, origin: str, request: str | None) -> DeviceResponse | None:
        """Return the response to a request that goes no further; None: it is to be handled."""
        try:
            self._origins.check(origin)
        except ProblemError as error:
            return self._reports.respond(error, 0.0, request)
        return DeviceResponse(HTTPStatus.NO_CONTENT, [], b"") if method == "OPTIONS" else None

    def shown(self, response: DeviceResponse, method: str, origin: str) -> DeviceResponse:
        """Return a response that the page may read, if it is of a listed origin."""
        status, headers, body = response
        return DeviceResponse(status, [*headers, *self._origins.headers(origin, method)], body)


class WsgiCrossOrigin:
    """The same on any WSGI server, in front of an application."""

    def __init__(self, onward: WSGIApplication, requests: CrossOriginRequests) -> None:
        self._onward, self._requests = onward, requests

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request, or hand it on."""
        origin = environ.get("HTTP_ORIGIN")
        if origin is None or environ["PATH_INFO"] not in PATHS:
            return self._onward(environ, start_response)
        method = environ["REQUEST_METHOD"]

        def start(status: str, headers: list[tuple[str, str]], *_: object) -> Any:
            shown = self._requests.shown(DeviceResponse(0, headers, b""), method, origin)
            return start_response(status, shown.headers)

        answer = self._requests.answer(method, origin, environ.get(ENVIRON_NAME))
        if answer is None:
            return self._onward(environ, start)
        start(f"{answer.status} {HTTPStatus(answer.status).phrase}", answer.headers)
        return [answer.body]
