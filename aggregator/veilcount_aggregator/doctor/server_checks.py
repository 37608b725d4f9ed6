"""Checks of a running server from outside, through its proxy.

They change nothing: read requests, and two bodies that the server must reject.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec
import requests

from ..api.schemas import Readiness
from ..store import DurabilityState
from .clock_skew import skew
from .finding import Check, CheckResult, Finding, Severity, examine, ok, warn, wrong
from .http_probe import OK, PROXY, ServerProbe
from .proxy import PROXY_CHECKS
from .tls import TLS, TRANSPORT
from .verdict_checks import read_metrics, verdict_problems

TARGET = "server"


def examine_server(url: str, key: str, clock: Callable[[], datetime]) -> Iterator[Finding]:
    """Yield the findings at an address; without a response, only that."""
    probe = ServerProbe(url, key, clock)
    first = list(examine(TARGET, {"responds": _responds}, probe))
    yield from first
    if any(each.state is Severity.WRONG for each in first):
        return
    yield from examine(
        TARGET, SERVED | TRANSPORT | (TLS if probe.secure else {}) | PROXY_CHECKS, probe
    )
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
    """Return the root cause of an error."""
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
    elif readiness.durable != DurabilityState.YES:
        yield wrong(f"reports are accepted; durable: {readiness.durable} ({readiness.why})", fix)
    elif readiness.serving < readiness.shards:
        yield wrong(f"{readiness.serving} of {readiness.shards} shards accept reports", fix)
    else:
        yield ok(f"reports are accepted durably: {readiness.why}")


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
    """Check the server's verdict counters, if the key gives access to them."""
    reply = probe.request("GET", "/metrics", with_key=True)
    if reply.status_code == OK:
        yield from verdict_problems(read_metrics(reply.text))


SERVED: dict[str, Check[ServerProbe]] = {"ready": _ready, "clock": _clock}
KEYED: dict[str, Check[ServerProbe]] = {"key": _key, "verdicts": _verdicts}
