"""A harmless request: is there an aggregator, which protocol version, what time has it?

A test batch without a report: one in production refuses it by name, which only an aggregator that
read it can do; one in development takes it and counts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from veilcount_shared.report import Batch, Losses
from veilcount_shared.wire import VERSION, encode_binary

from ..delivery.transport import OK, PROBLEM_TYPE, HttpTransport, Reply

NO_KEY = frozenset({401, 403})
NOT_HERE = frozenset({404, 405, 410})
BUSY = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What the probe found, and the time by the aggregator's clock."""

    ok: bool
    message: str
    time: float | None = None  # by the aggregator's clock


def probe(url: str, key: str | None, fingerprint: str, now: Callable[[], float]) -> ProbeResult:
    """Send an aggregator a test batch without a report."""
    body = encode_binary(Batch(losses=Losses(fingerprint), test=True))
    try:
        reply = HttpTransport(url, key, now).request("POST", "/v1/reports", body)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong on the way is the finding
        kind = type(error).__name__
        return ProbeResult(
            False, f"{url} cannot be reached ({kind}): check the address and the network"
        )
    ok, message = _judge(reply)
    return ProbeResult(ok, f"{url} {message}", _time(reply))


def _judge(reply: Reply) -> tuple[bool, str]:  # noqa: PLR0911 - one return a finding
    problem = _problem(reply)
    if reply.status == OK:
        return True, "takes test batches: it is in development mode"
    if problem.get("place") == "test":
        return True, f"speaks version {VERSION}"
    if str(problem.get("type", "")).endswith("unknown-version"):
        return False, f"does not speak version {VERSION}: bring both to the same release"
    if reply.status in NO_KEY:
        return False, "wants another key: give VEILCOUNT_KEY one of its device keys"
    if reply.status in NOT_HERE:
        return False, f"answers {reply.status}: no aggregator at this address, check the path"
    if reply.status in BUSY:
        return False, f"answers {reply.status}: it is busy or down, reports wait; tell its operator"
    return False, f"answers {reply.status}, not as an aggregator would: is a proxy in between?"


def _problem(reply: Reply) -> dict[str, object]:
    if not reply.headers.get("Content-Type", "").startswith(PROBLEM_TYPE):
        return {}
    try:
        problem = json.loads(reply.content)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _time(reply: Reply) -> float | None:
    try:
        return parsedate_to_datetime(reply.headers["Date"]).timestamp()
    except (KeyError, ValueError):
        return None
