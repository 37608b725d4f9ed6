"""Checks of a running server from outside, through its proxy.

They change nothing: read requests, and two bodies that the server must reject.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import requests
from requests.utils import DEFAULT_CA_BUNDLE_PATH

from veilcount_reader.http_client import AggregatorClient, key_url_problem, url_problem
from veilcount_serving.errors import SettingsError
from veilcount_serving.findings import (
    Check,
    CheckResult,
    Finding,
    Severity,
    examine,
    graded,
    ok,
    or_ok,
    warn,
    wrong,
)
from veilcount_shared.problem_details import PROBLEM_TYPE
from veilcount_shared.wire import BINARY_TYPE, MAX_BODY

from ...queries.checks.verdict_checks import NO_KEY, VerdictTotals, verdict_problems
from ...records.service_counters import REPORTS
from ...store import DurabilityState
from ...store.retention.skew_check import skew
from ...web.api.exposition import PREFIX
from ...web.api.reports import PATH
from ...web.api.schemas import Readiness

_LINE = re.compile(rf"{PREFIX}(\w+)_total{{(.*)}} ([0-9.e+]+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def read_metrics(text: str) -> VerdictTotals:
    """Return the totals in the metrics of a running server."""
    totals: defaultdict[str, Counter[str]] = defaultdict(Counter)
    requests = unkeyed = 0
    for name, labelled, number in _LINE.findall(text):
        labels, times = dict(_LABEL.findall(labelled)), int(float(number))
        if name == "verdicts":
            totals[labels["collection"]][labels["verdict"]] += times
        elif name == "requests" and labels["endpoint"] == REPORTS:
            requests += times
        elif name == "refused" and labels["problem"] == NO_KEY:
            unkeyed += times
    return VerdictTotals(totals, requests, unkeyed)


SECONDS = 10.0
OK, REDIRECT, UNAUTHORIZED, NOT_READY = 200, 300, 401, 503
PROXY = "check the reverse proxy"


@dataclass(frozen=True)
class ServerProbe:
    """The address of a server, an optional API key, and this machine's clock."""

    url: str
    key: str = field(repr=False)
    clock: Callable[[], datetime]

    def __post_init__(self) -> None:
        """Reject an invalid address, and sending a key unencrypted."""
        problem = key_url_problem(self.url) if self.key else url_problem(self.url)
        if problem:
            raise SettingsError("--url", self.url, problem)

    @property
    def secure(self) -> bool:
        """Whether it uses TLS."""
        return urlsplit(self.url).scheme == "https"

    def request(
        self, method: str, path: str, *, with_key: bool = False, **arguments: Any
    ) -> requests.Response:
        """Return the response of one endpoint, on a new connection."""
        with AggregatorClient(self.url, self.key, SECONDS) as client:
            return client.request(method, path, with_key=with_key, **arguments)


TARGET = "server"


def examine_server(url: str, key: str, clock: Callable[[], datetime]) -> Iterator[Finding]:
    """Yield the findings at an address; without a response, only that."""
    probe = ServerProbe(url, key, clock)
    first = list(examine(TARGET, {"responds": _responds}, probe))
    yield from first
    if any(finding.state is Severity.WRONG for finding in first):
        return
    yield from examine(TARGET, FIRST | (TLS if probe.secure else {}) | PROXIED, probe)
    if key:
        yield from examine(TARGET, KEYED, probe)


def _responds(probe: ServerProbe) -> Iterator[CheckResult]:
    try:
        reply = probe.request("GET", "/healthz")
        alive = reply.status_code == OK and reply.json() == {"status": "ok"}
    except requests.exceptions.SSLError as error:
        yield wrong(
            f"its certificate is not trusted: {_root(error)}",
            "devices do not send to it: renew it, or serve the whole chain",
        )
        return
    except requests.JSONDecodeError:
        alive = False
    except requests.RequestException as error:
        yield wrong(
            f"no server responds at {probe.url}: {_root(error)}",
            "check the address, that `veilcount serve` runs, and the firewall",
        )
        return
    if alive:
        yield ok(f"an aggregator responds at {probe.url}")
    else:
        fix = f"{PROXY} and the address: /healthz must reach the aggregator"
        yield wrong(f"HTTP {reply.status_code} from something that is not an aggregator", fix)


def _root(error: BaseException) -> str:
    reason = getattr(error.args[0], "reason", None) if error.args else None
    below = error.__cause__ or error.__context__
    if isinstance(reason, BaseException):
        return _root(reason)
    if isinstance(below, OSError) and not isinstance(below, requests.RequestException):
        return _root(below)
    message = getattr(error, "verify_message", None) or getattr(error, "strerror", None) or error
    return str(message).rpartition(": ")[2]


def _ready(probe: ServerProbe) -> Iterator[CheckResult]:
    reply = probe.request("GET", "/readyz")
    readiness = msgspec.json.decode(reply.content, type=Readiness)
    fix = "run `veilcount doctor --store URL` where the store can be reached"
    if not readiness.ready:
        yield wrong(f"reports are not accepted: {readiness.why}", fix)
    elif not DurabilityState(readiness.durable).suffices:
        yield wrong(f"reports are accepted; durable: {readiness.durable} ({readiness.why})", fix)
    elif readiness.serving < readiness.shards:
        yield wrong(f"{readiness.serving} of {readiness.shards} shards accept reports", fix)
    else:
        yield ok(f"reports are accepted; durable: {readiness.durable} ({readiness.why})")


def _clock(probe: ServerProbe) -> Iterator[CheckResult]:
    requested_at = probe.clock().replace(microsecond=0)
    date = probe.request("GET", "/healthz").headers.get("Date")
    if date is None:
        yield warn("responses have no Date header", f"{PROXY}: it removes the header")
    else:
        yield from skew(parsedate_to_datetime(date).astimezone(UTC), requested_at, probe.clock())


def _key(probe: ServerProbe) -> Iterator[CheckResult]:
    status = probe.request("GET", "/v1/collections", with_key=True).status_code
    if status == OK:
        yield ok("it gives access as an analyst")
    else:
        fix = "create one: `veilcount keys create --role analyst`"
        yield wrong(f"it gives no access as an analyst: HTTP {status}", fix)


def _verdicts(probe: ServerProbe) -> Iterator[CheckResult]:
    reply = probe.request("GET", "/metrics", with_key=True)
    if reply.status_code == OK:
        yield from verdict_problems(read_metrics(reply.text))


SOON = timedelta(days=14)
PORT = 443


def _private(probe: ServerProbe) -> Iterator[CheckResult]:
    if probe.secure:
        yield ok("TLS with a trusted certificate")
    elif key_url_problem(probe.url):
        yield wrong(
            "http: anyone on the network path can read pseudonyms and forge responses",
            "terminate TLS in a reverse proxy, and give devices an https:// address",
        )
    else:
        yield ok("http, on this machine only")


def _strict(probe: ServerProbe) -> Iterator[CheckResult]:
    if "Strict-Transport-Security" in probe.request("GET", "/healthz").headers:
        yield ok("HSTS is enabled")
    else:
        fix = f"{PROXY}: add Strict-Transport-Security: max-age=31536000"
        yield warn("no HSTS: a browser's first visit may use http", fix)


def _certificate(probe: ServerProbe) -> Iterator[CheckResult]:
    try:
        ends = _ends(probe.url)
    except OSError as error:  # an outgoing proxy, for example
        message = f"the certificate's expiry could not be read: {error}"
        yield warn(message, "check with openssl s_client")
        return
    fix = "renew it: devices do not send to a server with an invalid certificate"
    soon = ends - probe.clock() < SOON
    yield graded(f"valid until {ends:%Y-%m-%d}", fix, is_wrong=False, is_doubtful=soon)


def _ends(url: str) -> datetime:
    """Return the certificate's expiry, from a handshake with the trust store of requests."""
    parts = urlsplit(url)
    with (
        socket.create_connection((parts.hostname, parts.port or PORT), SECONDS) as plain_socket,
        _trusting(url).wrap_socket(plain_socket, server_hostname=parts.hostname) as wrapped,
    ):
        certificate = wrapped.getpeercert() or {}
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(certificate["notAfter"])), UTC)


def _trusting(url: str) -> ssl.SSLContext:
    with requests.Session() as session:
        trusted = session.merge_environment_settings(url, {}, False, None, None)["verify"]
    bundle = Path(trusted if isinstance(trusted, str) else DEFAULT_CA_BUNDLE_PATH)
    if bundle.is_dir():
        return ssl.create_default_context(capath=bundle)
    return ssl.create_default_context(cafile=bundle)


def _unencrypted(probe: ServerProbe) -> Iterator[CheckResult]:
    """Check the same host over http, which should not respond, or redirect."""
    parts = urlsplit(probe.url)
    if parts.port is not None:
        yield ok("not checked: the address has a port")
        return
    yield from http_redirect(f"http://{parts.hostname}")


def http_redirect(url: str) -> Iterator[CheckResult]:
    """Yield a problem if a host serves anything but a redirect without TLS."""
    try:
        reply = requests.get(f"{url}/healthz", timeout=SECONDS, allow_redirects=False)
    except requests.RequestException:
        yield ok(f"no response at {url}")
        return
    if reply.headers.get("Location", "").startswith("https://"):
        yield ok(f"{url} redirects to https")
    else:
        fix = f"{PROXY}: only redirect to https there"
        yield wrong(f"{url} responds unencrypted, with HTTP {reply.status_code}", fix)


PROTECTED = ("/metrics", "/v1/collections", "/v1/keys", "/v1/audit")


def _takes_bodies(probe: ServerProbe) -> Iterator[CheckResult]:
    """Send two bodies without reports: an empty one, and the longest that a device may send."""
    problems = (_body_problem(probe, b" " * size) for size in (0, MAX_BODY))
    yield next(filter(None, problems), ok(f"bodies of up to {MAX_BODY:,} bytes reach the server"))


def _body_problem(probe: ServerProbe, body: bytes) -> CheckResult | None:
    """Return a problem unless the aggregator itself rejects the body."""
    reply = probe.request("POST", PATH, data=body, headers={"Content-Type": BINARY_TYPE})
    kind = reply.headers.get("Content-Type", "").partition(";")[0]
    if kind == PROBLEM_TYPE and reply.status_code < NOT_READY:
        return None
    what = f"a POST of {len(body):,} bytes to {PATH} gets HTTP {reply.status_code}"
    if REDIRECT <= reply.status_code < REDIRECT + 100:
        return wrong(f"{what}, a redirect, which devices do not follow", "use the final address")
    if kind == PROBLEM_TYPE:
        return wrong(what, "`veilcount doctor --store URL` shows why reports are not accepted")
    fix = f"{PROXY}: allow POST with {MAX_BODY:,} bytes (nginx: client_max_body_size {MAX_BODY})"
    return wrong(f"{what}, not from the aggregator", fix)


@or_ok("no cookie, no version, no caching")
def _headers(probe: ServerProbe) -> Iterator[CheckResult]:
    headers = probe.request("GET", "/healthz").headers
    if "Set-Cookie" in headers:
        yield wrong("a cookie is set, which links a device's requests", f"{PROXY}: no cookies")
    if any(digit in headers.get("Server", "") for digit in "0123456789"):
        fix = f"{PROXY}: hide the version (nginx: server_tokens off)"
        yield warn(f"Server: {headers['Server']} names a version", fix)
    if "no-store" not in headers.get("Cache-Control", ""):
        yield wrong("Cache-Control: no-store is missing", f"{PROXY}: forward Cache-Control")
    if "Age" in headers:
        yield wrong("a response came from a cache", f"{PROXY}: disable caching")


@or_ok("endpoints of analysts and admins require a key")
def _access(probe: ServerProbe) -> Iterator[CheckResult]:
    for path in PROTECTED:
        status = probe.request("GET", path).status_code
        if status < REDIRECT:
            yield wrong(f"GET {path} works without a key", f"{PROXY}: does it add one?")
        elif status != UNAUTHORIZED:
            yield warn(f"GET {path} without a key gets HTTP {status}", f"{PROXY}: 401 is expected")


FIRST: dict[str, Check[ServerProbe]] = {"ready": _ready, "clock": _clock, "transport": _private}
TLS: dict[str, Check[ServerProbe]] = {
    "HSTS": _strict,
    "certificate": _certificate,
    "http": _unencrypted,
}
PROXIED: dict[str, Check[ServerProbe]] = {
    "bodies": _takes_bodies,
    "headers": _headers,
    "access": _access,
}
KEYED: dict[str, Check[ServerProbe]] = {"key": _key, "verdicts": _verdicts}
