"""A running server from outside, through whatever stands between.

Questions that change nothing, and two bodies that it must refuse.
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
from .proxy import PASSING
from .tls import TLS, TRANSPORT
from .verdict_checks import read_metrics, verdict_problems

OF = "server"


def examine_server(url: str, key: str, clock: Callable[[], datetime]) -> Iterator[Finding]:
    """Yield what is found at an address; where nobody answers, that alone."""
    probe = ServerProbe(url, key, clock)
    answers = list(examine(OF, {"answers": _answers}, probe))
    yield from answers
    if any(each.state is Severity.WRONG for each in answers):
        return
    yield from examine(OF, SERVED | TRANSPORT | (TLS if probe.secure else {}) | PASSING, probe)
    if key:
        yield from examine(OF, KEYED, probe)


def _answers(probe: ServerProbe) -> Iterator[CheckResult]:
    try:
        reply = probe.request("GET", "/healthz")
        alive = reply.status_code == OK and reply.json() == {"status": "ok"}
    except requests.exceptions.SSLError as error:
        yield wrong(
            f"its certificate is not trusted: {_root(error)}",
            "devices send nothing there: renew it, or send the whole chain",
        )
        return
    except requests.JSONDecodeError:
        alive = False
    except requests.RequestException as error:
        yield wrong(
            f"no server responds at {probe.url}: {_root(error)}",
            "is the address right, does `veilcount serve` run, does a firewall let this through?",
        )
        return
    if alive:
        yield ok(f"an aggregator answers at {probe.url}")
    else:
        fix = f"{PROXY}, and at the address: /healthz belongs to the aggregator"
        yield wrong(f"HTTP {reply.status_code} from something that is no aggregator", fix)


def _root(error: BaseException) -> str:
    """Return what is at the bottom of an error: the rest is how it came up."""
    reason = getattr(error.args[0], "reason", None) if error.args else None
    below = error.__cause__ or error.__context__
    if isinstance(reason, BaseException):
        return _root(reason)
    if isinstance(below, OSError) and not isinstance(below, requests.RequestException):
        return _root(below)
    said = getattr(error, "verify_message", None) or getattr(error, "strerror", None) or error
    return str(said).rpartition(": ")[2]


def _ready(probe: ServerProbe) -> Iterator[CheckResult]:
    reply = probe.request("GET", "/readyz")
    said = msgspec.json.decode(reply.content, type=Readiness)
    more = "`veilcount doctor --store URL`, where the store can be reached, says more"
    if not said.ready:
        yield wrong(f"no report is taken: {said.why}", more)
    elif said.durable != DurabilityState.YES:
        yield wrong(f"reports are taken; durable: {said.durable} ({said.why})", more)
    elif said.serving < said.shards:
        fix = "`veilcount doctor --store URL`, where the store can be reached, says which is away"
        yield wrong(f"{said.serving} of {said.shards} shards take reports", fix)
    else:
        yield ok(f"reports are taken and kept: {said.why}")


def _clock(probe: ServerProbe) -> Iterator[CheckResult]:
    asked = probe.clock().replace(microsecond=0)
    date = probe.request("GET", "/healthz").headers.get("Date")
    if date is None:
        yield warn("no Date in its answers", f"{PROXY}: it removes the header")
    else:
        yield from skew(parsedate_to_datetime(date).astimezone(UTC), asked, probe.clock())


def _opens(probe: ServerProbe) -> Iterator[CheckResult]:
    status = probe.request("GET", "/v1/collections", with_key=True).status_code
    if status == OK:
        yield ok("it gives access as an analyst")
    else:
        fix = "`veilcount keys create --role analyst` makes one"
        yield wrong(f"it gives no access as an analyst: HTTP {status}", fix)


def _verdicts(probe: ServerProbe) -> Iterator[CheckResult]:
    """Look at what the server counts; where the key does not open that, the key's check says so."""
    reply = probe.request("GET", "/metrics", with_key=True)
    if reply.status_code == OK:
        yield from verdict_problems(read_metrics(reply.text))


SERVED: dict[str, Check[ServerProbe]] = {"ready": _ready, "clock": _clock}
KEYED: dict[str, Check[ServerProbe]] = {"key": _opens, "verdicts": _verdicts}
