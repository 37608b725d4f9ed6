"""The issuer over HTTP: two endpoints for devices, one for everybody, three for its operator."""

from __future__ import annotations

import binascii
import json
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Annotated

import msgspec
from flask import Flask, Response, g, request
from msgspec import Meta, Struct
from werkzeug.exceptions import HTTPException

from veilcount_aggregator.errors import StoreError
from veilcount_aggregator.store.restore_lock import ledger_is_whole
from veilcount_aggregator.store.store_probe import StoreProbe
from veilcount_serving.origins import AllowedOrigins
from veilcount_serving.rate_limit import RateLimits
from veilcount_serving.response_headers import HEADERS, IMMUTABLE
from veilcount_serving.structured_logging import FaultLog
from veilcount_shared.errors import VeilcountError
from veilcount_shared.problem_details import PROBLEM_TYPE, Problem
from veilcount_shared.tokens import MAX_REQUESTS, TOKEN_BYTES
from veilcount_shared.wire import JSON_TYPE, encode_base64

from .accounts import AccountVerifier
from .issuance_metrics import IssuanceMetrics
from .issuer import Issuer
from .ledger import SlotRequest
from .problems import issuer_problem, problem_of_status, refuse, refuse_for

KEYS_PATH, TOKENS_PATH = "/v1/token-keys/<fingerprint>", "/v1/tokens"
DEVICE_PATHS = "/v1/token"
NUMBERS_PATH = "/v1/issued/<fingerprint>"
LIVE_PATH, READY_PATH, METRICS_PATH = "/health/live", "/health/ready", "/metrics"
MAX_BODY = 64 << 10  # as many requests as it may have take 48 kB
REFUSED_A_SECOND = 20  # of a worker: invalid account tokens beyond it get 429
AN_HOUR = "public, max-age=3600"
LINES_TYPE = "application/jsonl"
BEARER = "Bearer "
_BASE64_LENGTH = -(-TOKEN_BYTES * 8 // 6)

Base64Token = Annotated[str, Meta(min_length=_BASE64_LENGTH, max_length=_BASE64_LENGTH)]


class BlindedSlot(Struct, frozen=True, forbid_unknown_fields=True):
    """One requested signature."""

    period: Annotated[int, Meta(ge=0, le=0xFFFF)]
    blinded: Base64Token


class TokenRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `POST /v1/tokens`."""

    fingerprint: Annotated[str, Meta(max_length=64)]
    requests: Annotated[list[BlindedSlot], Meta(min_length=1)]


class TokenReply(Struct, frozen=True):
    """Its reply."""

    signatures: list[str]


class IssuerEndpoints:
    """The views of one issuer."""

    def __init__(
        self,
        issuer: Issuer,
        verifier: AccountVerifier,
        metrics: IssuanceMetrics,
        rate: float,
        seconds: Callable[[], float],
    ) -> None:
        """Sign `rate` tokens a second for an account in the long run; 0: no limit."""
        self._issuer = issuer
        self._verifier = verifier
        self._metrics = metrics
        self._probe = StoreProbe(issuer.store)
        self._limits = RateLimits(rate, seconds, burst=max(rate, 8 * MAX_REQUESTS))
        self._invalid = RateLimits(REFUSED_A_SECOND, seconds)

    def keys(self, fingerprint: str) -> Response:
        """Return the public keys of a collection, which its fingerprint pins."""
        body = self._issuer.key_list(fingerprint)
        headers = {"Cache-Control": IMMUTABLE, "Vary": "Origin"}
        return Response(body, mimetype=JSON_TYPE, headers=headers)

    def issued_numbers(self, fingerprint: str) -> Response:
        """Return the published numbers of a collection."""
        body = self._issuer.issued_numbers(fingerprint)
        return Response(body, mimetype=LINES_TYPE, headers={"Cache-Control": AN_HOUR})

    def tokens(self) -> Response:
        """Sign for an account."""
        account = self._account()
        body = _body()
        slots = [
            SlotRequest(token_request.period, _decode(token_request.blinded, place))
            for place, token_request in enumerate(body.requests)
        ]
        if wait := self._limits.wait(account, len(slots)):
            raise refuse_for(wait)
        signatures = self._issuer.issue(account, body.fingerprint, slots)
        self._metrics.issued(body.fingerprint, len(signatures))
        reply = msgspec.json.encode(
            TokenReply([encode_base64(signature) for signature in signatures])
        )
        return Response(reply, mimetype=JSON_TYPE)

    def live(self) -> Response:
        """The process responds; nothing else is checked."""
        return Response(b'{"status":"ok"}', mimetype=JSON_TYPE)

    def ready(self) -> Response:
        """Whether tokens are issued: the store keeps them, and lacks none."""
        try:
            health = self._probe.health()
            takes_writes = not (health.blocked or health.read_only or health.trouble)
            is_ready = takes_writes and ledger_is_whole(self._issuer.store)
        except (VeilcountError, FutureTimeoutError):
            is_ready = False
        body = msgspec.json.encode({"ready": is_ready})
        return Response(body, 200 if is_ready else 503, mimetype=JSON_TYPE)

    def metrics(self) -> Response:
        """Return the figures of all workers."""
        pending = self._issuer.periods_without_number()
        return Response("".join(self._metrics.exposition(pending)), mimetype="text/plain")

    def _account(self) -> str:
        header = request.headers.get("Authorization", "")
        token = header.removeprefix(BEARER)
        account = self._verifier(token, self._issuer.clock()) if token != header else None
        if account is None:
            if wait := self._invalid.wait(""):
                raise refuse_for(wait)
            raise refuse("no-account")
        return account


def create_issuer_app(
    issuer: Issuer,
    verifier: AccountVerifier,
    *,
    faults: FaultLog,
    rate: float,
    origins: Iterable[str] = (),
    seconds: Callable[[], float] = time.monotonic,
) -> tuple[Flask, IssuanceMetrics]:
    """Return the issuer as WSGI, and its figures, which are to be flushed now and then."""
    app = Flask(__name__, static_folder=None)
    app.config.update(MAX_CONTENT_LENGTH=MAX_BODY, PROVIDE_AUTOMATIC_OPTIONS=False)
    app.url_map.merge_slashes = False
    metrics = IssuanceMetrics(issuer.store)
    views = IssuerEndpoints(issuer, verifier, metrics, rate, seconds)
    app.add_url_rule(KEYS_PATH, "token keys", views.keys)
    app.add_url_rule(NUMBERS_PATH, "issued numbers", views.issued_numbers)
    app.add_url_rule(TOKENS_PATH, "tokens", views.tokens, methods=["POST"])
    app.add_url_rule(LIVE_PATH, "live", views.live)
    app.add_url_rule(READY_PATH, "ready", views.ready)
    app.add_url_rule(METRICS_PATH, "metrics", views.metrics)
    _handle(app, metrics, faults, seconds)
    _handle_pages(app, AllowedOrigins(origins, "GET, POST"))
    return app, metrics


def _handle(
    app: Flask, metrics: IssuanceMetrics, faults: FaultLog, seconds: Callable[[], float]
) -> None:
    @app.before_request
    def begin() -> None:
        g.started = seconds()

    @app.errorhandler(Exception)
    def refuse_request(error: Exception) -> Response:
        problem = _problem(error, faults)
        if request.endpoint == "tokens":
            metrics.refused(problem.kind.name)
        return Response(problem.body, problem.status, problem.headers, mimetype=PROBLEM_TYPE)

    @app.after_request
    def end(response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if request.endpoint == "tokens":
            metrics.answered(seconds() - g.started)
        return response


def _handle_pages(app: Flask, origins: AllowedOrigins) -> None:
    """Let pages of listed origins call what devices do, and no other."""

    def page_origin() -> str | None:
        return request.headers.get("Origin") if request.path.startswith(DEVICE_PATHS) else None

    @app.before_request
    def check() -> Response | None:
        if (origin := page_origin()) is None:
            return None
        origins.check(origin)
        return Response(status=204) if request.method == "OPTIONS" else None

    @app.after_request
    def show(response: Response) -> Response:
        if (origin := page_origin()) is not None:
            response.headers.extend(origins.headers(origin, request.method))
        return response


def _problem(error: Exception, faults: FaultLog) -> Problem:
    if isinstance(error, HTTPException):
        allow = error.get_response().headers.get("Allow")
        return problem_of_status(error.code or 500, {"Allow": allow} if allow else {})
    problem = issuer_problem(error)
    if isinstance(error, StoreError):
        faults.log("store", request.endpoint or "other", error, reason=str(error))
    elif problem.kind.name == "failed":
        faults.log("failed", request.endpoint or "other", error)
    return problem


def _body() -> TokenRequest:
    if request.mimetype != JSON_TYPE:
        raise refuse("unsupported", place="Content-Type")
    try:
        document = json.loads(request.get_data().decode(), object_pairs_hook=_unique)
        body = msgspec.convert(document, TokenRequest)
    except msgspec.ValidationError as error:
        raise refuse("bad-field", str(error), "body") from error
    except (ValueError, RecursionError) as error:
        raise refuse("bad-request", "the body is not JSON, or has a key twice", "body") from error
    if (number := len(body.requests)) > MAX_REQUESTS:
        raise refuse("too-large", f"{number} requests: {MAX_REQUESTS} at most", "requests")
    return body


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object whose keys are unique: a body must not have two meanings."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key is given twice")
    return fields


def _decode(text: str, place: int) -> bytes:
    """Return the bytes of base64url without padding, encoded uniquely."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raw = b""
    if encode_base64(raw) != text:
        why = "give base64url without padding"
        raise refuse("bad-field", why, f"requests[{place}].blinded")
    return raw
