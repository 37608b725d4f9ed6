"""The gateway of Oblivious HTTP [RFC 9458]: devices' requests whose addresses a relay has kept.

`GatewayEndpoint` decides and does no I/O: it admits an encapsulated request by its head, opens it,
and seals the response. What is inside is answered as if it had come directly; but only what devices
call, and never by another host. It is answered by whoever takes direct reports: on the event loop
of a worker (`server.rsgi`), or on a thread of any WSGI server (`WsgiGateway`). What cannot be
opened never reaches the intake. Sent twice, a report is a duplicate, as ever.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from flask import Response as FlaskResponse

from veilcount_serving.request_ids import ENVIRON_NAME
from veilcount_serving.response_headers import HEADERS
from veilcount_shared.errors import ObliviousError, UnknownKey
from veilcount_shared.oblivious_http.binary_http import Request, Response
from veilcount_shared.oblivious_http.encapsulation import (
    KEYS_TYPE,
    REQUEST_TYPE,
    RESPONSE_TYPE,
    ObliviousExchange,
    open_request,
)
from veilcount_shared.oblivious_http.key_config import encode_configs
from veilcount_shared.problem_details import PROBLEM_TYPE
from veilcount_shared.wire import MAX_BODY

from ...records.gateway_keys import load_gateway_keys
from .endpoint import ENDPOINTS, Api, Endpoint, endpoint
from .problems import refusal
from .reports import PATH as REPORTS_PATH
from .reports import DeviceProblems, DeviceResponse
from .request_metrics import RequestMetrics
from .rows import PATH as ROWS_PATH

PATH = "/v1/ohttp"
KEYS_PATH = "/v1/ohttp-keys"
ENDPOINT = "gateway"
OVERHEAD = 4096  # bytes of an encapsulated body beyond its own
REPLY_BYTES = 512  # replies are padded to multiples of it: their lengths show no verdict
#: what of an encapsulated request is not as it should be, and the reason it is counted under
ENCAPSULATION, CONTENT = "encapsulation", "content"
_HEADERS = {"authorization": "HTTP_AUTHORIZATION", "content-type": "CONTENT_TYPE"}
_SHOWN = frozenset({"content-type", "retry-after"})
_SEALED = [("Content-Type", RESPONSE_TYPE), *HEADERS.items()]

Environ = dict[str, Any]

ENDPOINTS.append(
    Endpoint(
        method="POST",
        path=PATH,
        group=ENDPOINT,
        description="Take an encapsulated request of a device (RFC 9458), which came through a"
        f" relay. It may be for {REPORTS_PATH} and {ROWS_PATH} alone.",
        returns=RESPONSE_TYPE,
        extra_problems=(
            *("gateway-key", "bad-request", "incomplete", "too-large", "unsupported"),
            *("wrong-origin", "busy", "unavailable", "failed"),
        ),
    )
)


@endpoint("GET", KEYS_PATH, returns=KEYS_TYPE, problems=("unavailable", "failed", "not-found"))
def show_gateway_keys(api: Api) -> FlaskResponse:
    """Return the public keys of the gateway (RFC 9458), the newest first."""
    keys = load_gateway_keys(api.aggregator.store)
    if not keys:
        raise refusal("not-found", "this server has no gateway: `veilcount relay-keys create`")
    return FlaskResponse(encode_configs([key.config for key in keys]), mimetype=KEYS_TYPE)


@dataclass(frozen=True, slots=True)
class OpenedRequest:
    """A device's request, and what seals the response to it."""

    request: Request
    exchange: ObliviousExchange

    def header(self, name: str) -> str:
        """Return the value of a header; "": the request has none of this name."""
        return {field.lower(): value for field, value in self.request.fields}.get(name, "")

    @property
    def is_reports(self) -> bool:
        """Whether it is for the endpoint of reports."""
        return self.request.method == "POST" and self.request.path == REPORTS_PATH

    @property
    def is_row_close(self) -> bool:
        """Whether it is for the endpoint that closes rows."""
        return self.request.method == "POST" and self.request.path == ROWS_PATH


class GatewayEndpoint:
    """Admits and opens encapsulated requests, seals responses, and counts what does not open."""

    def __init__(
        self,
        secrets: Callable[[], Mapping[int, X25519PrivateKey]],
        metrics: RequestMetrics,
        problems: DeviceProblems,
    ) -> None:
        """`secrets` returns the private keys that are valid now, by id; it waits for no store."""
        self._secrets = secrets
        self._metrics = metrics
        self._problems = problems

    def admit(self, method: str, kind: str, length: str) -> int:
        """Return the announced size of a request's body, or refuse the request by its head."""
        if method != "POST":
            raise refusal("wrong-method", Allow="POST")
        if kind != REQUEST_TYPE:
            raise refusal("unsupported", f"give {REQUEST_TYPE}")
        if not (length.isascii() and length.isdigit()):
            raise refusal("bad-request", "give a Content-Length", "Content-Length")
        if len(length) > len(str(MAX_BODY)) or int(length) > MAX_BODY + OVERHEAD:
            raise refusal("too-large")
        return int(length)

    def open(self, sealed: bytes) -> OpenedRequest:
        """Return the request of an encapsulated one, or refuse it. One of no valid key is cheap."""
        try:
            plain, exchange = open_request(self._secrets(), sealed)
        except UnknownKey:
            raise refusal("gateway-key") from None
        except ObliviousError as error:
            raise refusal("bad-request", str(error), ENCAPSULATION) from None
        try:
            return OpenedRequest(Request.decode(plain), exchange)
        except ObliviousError as error:
            raise refusal("bad-request", str(error), CONTENT) from None

    def seal(self, opened: OpenedRequest, response: DeviceResponse) -> DeviceResponse:
        """Return the encapsulated response; count a relayed request whose reports have verdicts."""
        status, headers, body = response
        if opened.is_reports and status < HTTPStatus.MULTIPLE_CHOICES:
            self._metrics.relayed()
        shown = [(name.lower(), value) for name, value in headers]
        fields = tuple((name, value) for name, value in shown if name in _SHOWN)
        plain = _padded(Response(status, fields, body))
        exchange = opened.exchange
        return DeviceResponse(200, _SEALED, exchange.seal(plain, os.urandom(exchange.nonce_bytes)))

    def refuse(self, error: Exception, header: str | None) -> DeviceResponse:
        """Return the response to a request that was not opened, in clear, and count it."""
        problem = self._problems.problem(ENDPOINT, error, header)
        is_inside = problem.place in {ENCAPSULATION, CONTENT}
        self._metrics.gateway_refused(problem.place if is_inside else problem.kind.name)
        return DeviceResponse.from_problem(problem)

    def refuse_inside(self, error: Exception, header: str | None) -> DeviceResponse:
        """Return the response, to be sealed, to an opened request that could not be handed on."""
        return DeviceResponse.from_problem(self._problems.problem(ENDPOINT, error, header))

    def refuse_endpoint(self) -> DeviceResponse:
        """Return the response, to be sealed, to a request for what devices do not call."""
        self._metrics.gateway_refused("not-found")
        return DeviceResponse(HTTPStatus.NOT_FOUND, [("Content-Type", PROBLEM_TYPE)], b"")


class WsgiGateway:
    """The gateway on any WSGI server, in front of an application."""

    def __init__(self, onward: WSGIApplication, endpoint: GatewayEndpoint) -> None:
        self._onward, self._endpoint = onward, endpoint

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request; those of other paths are handed on."""
        if environ["PATH_INFO"] != PATH:
            return self._onward(environ, start_response)
        try:
            opened = self._open(environ)
        except Exception as error:  # noqa: BLE001 - answered as what it is
            response = self._endpoint.refuse(error, environ.get(ENVIRON_NAME))
        else:
            response = self._endpoint.seal(opened, self._serve(opened))
        return response.send(start_response)

    def _open(self, environ: Environ) -> OpenedRequest:
        length = environ.get("CONTENT_LENGTH") or ""
        kind = environ.get("CONTENT_TYPE", "")
        size = self._endpoint.admit(environ["REQUEST_METHOD"], kind, length)
        try:
            raw: bytes = environ["wsgi.input"].read(size)
        except OSError:  # the relay went away
            raise refusal("incomplete") from None
        if len(raw) < size:
            raise refusal("incomplete")
        return self._endpoint.open(raw)

    def _serve(self, opened: OpenedRequest) -> DeviceResponse:
        """Return the response of the device's endpoint that a request is for."""
        if not (opened.is_reports or opened.is_row_close):
            return self._endpoint.refuse_endpoint()
        head: list[Any] = []

        def start(status: str, headers: list[tuple[str, str]], *_: object) -> Any:
            head[:] = [int(status[:3]), headers]
            return lambda _: None

        pieces = self._onward(inner_environ(opened), start)
        body = b"".join(pieces)
        getattr(pieces, "close", lambda: None)()
        return DeviceResponse(head[0], head[1], body)


def inner_environ(opened: OpenedRequest) -> Environ:
    """Return the WSGI environment of an opened request, made of nothing but what it says."""
    request = opened.request
    values = {variable: opened.header(name) for name, variable in _HEADERS.items()}
    return {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": request.path,
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "0",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_LENGTH": str(len(request.content)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "https",
        "wsgi.input": io.BytesIO(request.content),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        **{variable: value for variable, value in values.items() if value},
    }


def _padded(response: Response) -> bytes:
    plain = response.encode()
    return plain + bytes(-len(plain) % REPLY_BYTES)
