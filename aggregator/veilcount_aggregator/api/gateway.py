"""The gateway of Oblivious HTTP [RFC 9458]: devices' requests whose addresses a relay has kept.

It stands in front of everything, opens a request, and hands it on as if it had come directly; but
only to what devices call, and never to another host. What cannot be opened never reaches the
intake. Sent twice, a report is a duplicate, as ever.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication

from flask import Response as FlaskResponse

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
from veilcount_shared.wire import MAX_BODY

from ..auth.gateway_keys import GatewayKey, load_gateway_keys
from ..problem_details import PROBLEM_TYPE, Problem, ProblemError
from ..response_headers import HEADERS
from ..store import Store
from .endpoint import ENDPOINTS, Api, Endpoint, endpoint
from .problems import internal_error, problem_from_error, refusal
from .reports import PATH as REPORTS_PATH
from .rows import PATH as ROWS_PATH

PATH = "/v1/ohttp"
KEYS_PATH = "/v1/ohttp-keys"
OVERHEAD = 4096  # bytes of an encapsulated body beyond its own
REPLY_BYTES = 512  # replies are padded to multiples of it: their lengths show no verdict
_HEADERS = {"authorization": "HTTP_AUTHORIZATION", "content-type": "CONTENT_TYPE"}

Environ = dict[str, Any]

ENDPOINTS.append(
    Endpoint(
        method="POST",
        path=PATH,
        group="gateway",
        description="Take an encapsulated request of a device (RFC 9458), which came through a"
        f" relay. It may be for {REPORTS_PATH} and {ROWS_PATH} alone.",
        returns=RESPONSE_TYPE,
        extra_problems=("gateway-key", "bad-request", "too-large", "unsupported", "failed"),
    )
)


@endpoint("GET", KEYS_PATH, returns=KEYS_TYPE, problems=("unavailable", "failed", "not-found"))
def show_gateway_keys(api: Api) -> FlaskResponse:
    """Return the public keys of the gateway (RFC 9458), the newest first."""
    keys = load_gateway_keys(api.aggregator.store)
    if not keys:
        raise refusal("not-found", "this server has no gateway: `veilcount relay-keys create`")
    return FlaskResponse(encode_configs([each.config for each in keys]), mimetype=KEYS_TYPE)


class GatewayKeys:
    """The keys of a store, read again when its records have changed."""

    def __init__(self, store: Store, generation: Callable[[], int]) -> None:
        self._store, self._generation = store, generation
        self._known: tuple[int, Sequence[GatewayKey]] = (-1, ())

    def current(self) -> Sequence[GatewayKey]:
        """Return the keys that are valid now."""
        generation = self._generation()
        if generation != self._known[0]:
            self._known = (generation, load_gateway_keys(self._store))
        return self._known[1]


class WsgiGateway:
    """The gateway in front of an application; it counts what it handed on, and what it refused."""

    def __init__(
        self,
        onward: WSGIApplication,
        keys: Callable[[], Sequence[GatewayKey]],
        relayed: Callable[[], object],
        refused: Callable[[str], object],
    ) -> None:
        self._onward, self._keys = onward, keys
        self._relayed, self._refused = relayed, refused

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request; those of other paths are handed on."""
        if environ["PATH_INFO"] != PATH:
            return self._onward(environ, start_response)
        try:
            request, exchange = self._open(environ)
        except Exception as error:  # noqa: BLE001 - answered as what it is
            problem = _problem(error)
            self._refused(problem.kind.name)
            return _refuse(problem, start_response)
        sealed = exchange.seal(_padded(self._serve(request)), os.urandom(exchange.nonce_bytes))
        headers = [("Content-Type", RESPONSE_TYPE), ("Content-Length", str(len(sealed)))]
        start_response("200 OK", [*headers, *HEADERS.items()])
        return [sealed]

    def _open(self, environ: Environ) -> tuple[Request, ObliviousExchange]:
        if environ["REQUEST_METHOD"] != "POST":
            raise refusal("wrong-method", Allow="POST")
        if environ.get("CONTENT_TYPE", "") != REQUEST_TYPE:
            raise refusal("unsupported", f"give {REQUEST_TYPE}")
        keys = {each.key_id: each.secret for each in self._keys()}
        plain, exchange = open_request(keys, _body(environ))
        return Request.decode(plain), exchange

    def _serve(self, request: Request) -> Response:
        """Return the response of the device's endpoint that a request is for."""
        if not _is_for_devices(request):
            return Response(HTTPStatus.NOT_FOUND, (("content-type", PROBLEM_TYPE),))
        head: list[Any] = []

        def start(status: str, headers: list[tuple[str, str]], *_: object) -> Any:
            head[:] = [int(status[:3]), headers]
            return lambda _: None

        pieces = self._onward(_environ(request), start)
        content = b"".join(pieces)
        getattr(pieces, "close", lambda: None)()
        if request.path == REPORTS_PATH and head[0] < HTTPStatus.MULTIPLE_CHOICES:
            self._relayed()
        shown = [(name.lower(), value) for name, value in head[1]]
        fields = tuple(each for each in shown if each[0] in {"content-type", "retry-after"})
        return Response(head[0], fields, content)


def _is_for_devices(request: Request) -> bool:
    return request.method == "POST" and request.path in {REPORTS_PATH, ROWS_PATH}


def _environ(request: Request) -> Environ:
    """Return the environment of a request, made of nothing but what it says."""
    fields = {name.lower(): value for name, value in request.fields}
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
        **{_HEADERS[name]: value for name, value in fields.items() if name in _HEADERS},
    }


def _body(environ: Environ) -> bytes:
    """Return the body, whose length is announced and within the limit before it is read."""
    length = environ.get("CONTENT_LENGTH") or ""
    if not (length.isascii() and length.isdigit()):
        raise refusal("bad-request", "give a Content-Length")
    if len(length) > len(str(MAX_BODY)) or int(length) > MAX_BODY + OVERHEAD:
        raise refusal("too-large")
    raw: bytes = environ["wsgi.input"].read(int(length))
    if len(raw) < int(length):
        raise refusal("incomplete")
    return raw


def _padded(response: Response) -> bytes:
    plain = response.encode()
    return plain + bytes(-len(plain) % REPLY_BYTES)


def _problem(error: Exception) -> Problem:
    if isinstance(error, UnknownKey):
        return refusal("gateway-key").problem
    if isinstance(error, ObliviousError):
        return refusal("bad-request", str(error)).problem
    return problem_from_error(error) if isinstance(error, ProblemError) else internal_error()


def _refuse(problem: Problem, start_response: StartResponse) -> Iterable[bytes]:
    headers = [("Content-Type", PROBLEM_TYPE), *problem.headers.items()]
    start_response(
        f"{problem.status} {HTTPStatus(problem.status).phrase}",
        [*headers, ("Content-Length", str(len(problem.body))), *HEADERS.items()],
    )
    return [problem.body]
