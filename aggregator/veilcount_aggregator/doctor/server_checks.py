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
from .finding import Finding, Look, Severity, Told, examine, ok, warn, wrong
from .http_probe import OK, PROXY, Served
from .proxy import PASSING
from .tls import TLS, TRANSPORT
from .verdict_checks import judged, read_metrics

OF = "server"


def examine_server(url: str, key: str, clock: Callable[[], datetime]) -> Iterator[Finding]:
    """Yield what is found at an address; where nobody answers, that alone."""
    served = Served(url, key, clock)
    answers = list(examine(OF, {"answers": _answers}, served))
    yield from answers
    if any(each.state is Severity.WRONG for each in answers):
        return
    yield from examine(OF, SERVED | TRANSPORT | (TLS if served.secure else {}) | PASSING, served)
    if key:
        yield from examine(OF, KEYED, served)


def _answers(served: Served) -> Iterator[Told]:
    try:
        reply = served.ask("GET", "/healthz")
        alive = reply.status_code == OK and reply.json() == {"status": "ok"}
    except requests.exceptions.SSLError as error:
        yield wrong(
            f"its certificate is not believed: {_root(error)}",
            "devices send nothing there: renew it, or send the whole chain",
        )
        return
    except requests.JSONDecodeError:
        alive = False
    except requests.RequestException as error:
        yield wrong(
            f"nobody answers at {served.url}: {_root(error)}",
            "is the address right, does `veilcount serve` run, does a firewall let this through?",
        )
        return
    if alive:
        yield ok(f"an aggregator answers at {served.url}")
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


def _ready(served: Served) -> Iterator[Told]:
    reply = served.ask("GET", "/readyz")
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


def _clock(served: Served) -> Iterator[Told]:
    asked = served.clock().replace(microsecond=0)
    date = served.ask("GET", "/healthz").headers.get("Date")
    if date is None:
        yield warn("no Date in its answers", f"{PROXY}: it removes the header")
    else:
        yield from skew(parsedate_to_datetime(date).astimezone(UTC), asked, served.clock())


def _opens(served: Served) -> Iterator[Told]:
    status = served.ask("GET", "/v1/collections", keyed=True).status_code
    if status == OK:
        yield ok("it opens the analyst's doors")
    else:
        fix = "`veilcount keys create --role analyst` makes one"
        yield wrong(f"it does not open the analyst's doors: HTTP {status}", fix)


def _verdicts(served: Served) -> Iterator[Told]:
    """Look at what the server counts; where the key does not open that, the key's check says so."""
    reply = served.ask("GET", "/metrics", keyed=True)
    if reply.status_code == OK:
        yield from judged(read_metrics(reply.text))


SERVED: dict[str, Look[Served]] = {"ready": _ready, "clock": _clock}
KEYED: dict[str, Look[Served]] = {"key": _opens, "verdicts": _verdicts}
