"""What passes the proxy in front, and what should not: bodies, headers, strangers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from veilcount_shared.wire import JSON_TYPE, MAX_BODY

from ..api.problems import PROBLEM_TYPE
from ..api.reports import PATH
from .finding import Check, CheckResult, ok, problems_or_ok, warn, wrong
from .http_probe import NOT_READY, PROXY, REDIRECT, UNAUTHORIZED, ServerProbe

CLOSED = ("/metrics", "/v1/collections", "/v1/keys", "/v1/audit")


def _takes_bodies(probe: ServerProbe) -> Iterator[CheckResult]:
    """Two bodies that hold no report: an empty one, and the longest that a device may send."""
    for size in (0, MAX_BODY):
        told = _refused(probe, b" " * size)
        if told:
            yield told
            return
    yield ok(f"bodies of up to {MAX_BODY:,} bytes arrive")


def _refused(probe: ServerProbe, body: bytes) -> CheckResult | None:
    """Return what is wrong with how a body is answered: it is to be refused by the aggregator."""
    reply = probe.request("POST", PATH, data=body, headers={"Content-Type": JSON_TYPE})
    kind = reply.headers.get("Content-Type", "").partition(";")[0]
    if kind == PROBLEM_TYPE and reply.status_code < NOT_READY:
        return None
    what = f"a POST of {len(body):,} bytes to {PATH} is answered with HTTP {reply.status_code}"
    if REDIRECT <= reply.status_code < REDIRECT + 100:
        return wrong(f"{what}, a redirect: no device follows one", "give devices the last address")
    if kind == PROBLEM_TYPE:
        return wrong(what, "`veilcount doctor --store URL` says why no report is taken")
    fix = f"{PROXY}: POST has to pass, with {MAX_BODY:,} bytes (nginx: client_max_body_size 2m)"
    return wrong(f"{what}, not by the aggregator", fix)


def _headers(probe: ServerProbe) -> Iterator[CheckResult]:
    yield from problems_or_ok(
        _telling(probe.request("GET", "/healthz").headers), "they reveal nothing"
    )


def _telling(headers: Mapping[str, str]) -> Iterator[CheckResult]:
    if "Set-Cookie" in headers:
        yield wrong(
            "it sets a cookie: one device's requests could be joined", f"{PROXY}: no cookies"
        )
    if any(digit in headers.get("Server", "") for digit in "0123456789"):
        fix = f"{PROXY}: hide its version (nginx: server_tokens off)"
        yield warn(f"Server: {headers['Server']} names a version", fix)
    if "no-store" not in headers.get("Cache-Control", ""):
        yield wrong("answers may be cached: no-store is gone", f"{PROXY}: pass Cache-Control on")
    if "Age" in headers:
        yield wrong("an answer came out of a cache", f"{PROXY}: nothing here may be cached")


def _closed(probe: ServerProbe) -> Iterator[CheckResult]:
    yield from problems_or_ok(_open_doors(probe), "endpoints of analysts and admins require a key")


def _open_doors(probe: ServerProbe) -> Iterator[CheckResult]:
    for path in CLOSED:
        status = probe.request("GET", path).status_code
        if status < REDIRECT:
            yield wrong(f"GET {path} is answered without a key", f"{PROXY}: does it add one?")
        elif status != UNAUTHORIZED:
            yield warn(f"GET {path} is answered with HTTP {status}", f"{PROXY}: 401 is the answer")


PASSING: dict[str, Check[ServerProbe]] = {
    "bodies": _takes_bodies,
    "headers": _headers,
    "closed doors": _closed,
}
