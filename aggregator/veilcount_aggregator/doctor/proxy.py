"""Checks of a reverse proxy: bodies that must pass, headers and access that must not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from veilcount_shared.wire import JSON_TYPE, MAX_BODY

from ..api.problems import PROBLEM_TYPE
from ..api.reports import PATH
from .finding import Check, CheckResult, ok, problems_or_ok, warn, wrong
from .http_probe import NOT_READY, PROXY, REDIRECT, UNAUTHORIZED, ServerProbe

PROTECTED = ("/metrics", "/v1/collections", "/v1/keys", "/v1/audit")


def _takes_bodies(probe: ServerProbe) -> Iterator[CheckResult]:
    """Send two bodies without reports: an empty one, and the longest that a device may send."""
    problems = (_body_problem(probe, b" " * size) for size in (0, MAX_BODY))
    yield next(filter(None, problems), ok(f"bodies of up to {MAX_BODY:,} bytes reach the server"))


def _body_problem(probe: ServerProbe, body: bytes) -> CheckResult | None:
    """Return a problem unless the aggregator itself rejects the body."""
    reply = probe.request("POST", PATH, data=body, headers={"Content-Type": JSON_TYPE})
    kind = reply.headers.get("Content-Type", "").partition(";")[0]
    if kind == PROBLEM_TYPE and reply.status_code < NOT_READY:
        return None
    what = f"a POST of {len(body):,} bytes to {PATH} gets HTTP {reply.status_code}"
    if REDIRECT <= reply.status_code < REDIRECT + 100:
        return wrong(f"{what}, a redirect, which devices do not follow", "use the final address")
    if kind == PROBLEM_TYPE:
        return wrong(what, "`veilcount doctor --store URL` shows why reports are not accepted")
    fix = f"{PROXY}: allow POST with {MAX_BODY:,} bytes (nginx: client_max_body_size 2m)"
    return wrong(f"{what}, not from the aggregator", fix)


def _headers(probe: ServerProbe) -> Iterator[CheckResult]:
    problems = _header_problems(probe.request("GET", "/healthz").headers)
    yield from problems_or_ok(problems, "no cookie, no version, no caching")


def _header_problems(headers: Mapping[str, str]) -> Iterator[CheckResult]:
    if "Set-Cookie" in headers:
        yield wrong("a cookie is set, which links a device's requests", f"{PROXY}: no cookies")
    if any(digit in headers.get("Server", "") for digit in "0123456789"):
        fix = f"{PROXY}: hide the version (nginx: server_tokens off)"
        yield warn(f"Server: {headers['Server']} names a version", fix)
    if "no-store" not in headers.get("Cache-Control", ""):
        yield wrong("Cache-Control: no-store is missing", f"{PROXY}: forward Cache-Control")
    if "Age" in headers:
        yield wrong("a response came from a cache", f"{PROXY}: disable caching")


def _access(probe: ServerProbe) -> Iterator[CheckResult]:
    yield from problems_or_ok(
        _open_endpoints(probe), "endpoints of analysts and admins require a key"
    )


def _open_endpoints(probe: ServerProbe) -> Iterator[CheckResult]:
    for path in PROTECTED:
        status = probe.request("GET", path).status_code
        if status < REDIRECT:
            yield wrong(f"GET {path} works without a key", f"{PROXY}: does it add one?")
        elif status != UNAUTHORIZED:
            yield warn(f"GET {path} without a key gets HTTP {status}", f"{PROXY}: 401 is expected")


PROXY_CHECKS: dict[str, Check[ServerProbe]] = {
    "bodies": _takes_bodies,
    "headers": _headers,
    "access": _access,
}
