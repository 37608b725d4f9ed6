"""Why nothing left this machine: `python -m veilcount_client doctor`.

It looks and changes nothing: no ceiling is set, no report is sent, and a state that is not there is
not made. What it asks the aggregator is a test batch without a report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path

from veilcount_shared import load_collections
from veilcount_shared.errors import VeilcountError
from veilcount_shared.report import Batch, Losses
from veilcount_shared.wire import VERSION, encode_binary

from ..clock import SystemClock, instant
from ..delivery.replies import describe
from ..delivery.transport import OK, HttpTransport, Reply, in_clear, malformed, problem_document
from ..settings import JITTER, ClientSettings
from ..state.factory import state_location
from . import problems
from .problems import Collections, DiagnosticResult
from .state_checks import check_state

GRACE = JITTER  # a clock that is off by more shows in when its periods begin: it marks the device


def examine(
    settings: ClientSettings, now: Callable[[], float] = SystemClock.now
) -> Iterator[DiagnosticResult]:
    """Yield what was found, in the order in which it would have to be mended."""
    problem = problems.kill_switch(settings)
    yield DiagnosticResult.from_problem("kill switch", problem, "none is set")
    collections, loaded = _definitions(settings)
    yield loaded
    if collections:
        yield from _campaigns(collections, now())
        place = state_location(settings, next(iter(collections.values())).app)
        yield from check_state(place, settings, collections, now())
    yield from _aggregator(settings, collections, now)


def _definitions(settings: ClientSettings) -> tuple[Collections, DiagnosticResult]:
    if settings.collections is None:
        message = "none: give --collections or VEILCOUNT_COLLECTIONS the path of your file"
        return {}, DiagnosticResult("definitions", False, message)
    try:
        collections = load_collections(settings.collections)
    except VeilcountError as error:
        return {}, DiagnosticResult("definitions", False, str(error))
    if not collections:
        message = f"{Path(settings.collections).name} has none: add a table for each question"
        return {}, DiagnosticResult("definitions", False, message)
    return collections, DiagnosticResult("definitions", True, ", ".join(collections))


def _campaigns(collections: Collections, now: float) -> Iterator[DiagnosticResult]:
    """Yield for each campaign whether it is running, as this machine's clock has it."""
    today = instant(now).date()
    for name, each in collections.items():
        running = f"it is {today}, the campaign runs until {each.until}"
        problem = problems.campaign(each, now)
        yield DiagnosticResult.from_problem(f"clock, {name}", problem, running)


def _aggregator(
    settings: ClientSettings, collections: Collections, now: Callable[[], float]
) -> Iterator[DiagnosticResult]:
    if settings.url is None:
        message = "none: give --url or VEILCOUNT_URL its address"
        yield DiagnosticResult("aggregator", False, message)
        return
    if why := malformed(settings.url):
        yield DiagnosticResult("address", False, why)
        return
    if why := in_clear(settings.url, settings.key):
        yield DiagnosticResult("address", False, why)
        if settings.key:  # it is not shown to others to look further
            return
    fingerprint = next((each.fingerprint for each in collections.values()), "0" * 64)
    answer = probe(settings.url, settings.key, fingerprint, now)
    yield DiagnosticResult("aggregator", answer.ok, answer.message)
    if answer.time is None:
        return
    apart = now() - answer.time
    if abs(apart) > GRACE:
        message = f"{apart / 3600:+,.1f} hours from the aggregator's: let NTP set this clock"
        yield DiagnosticResult("clock", False, message)
    else:
        yield DiagnosticResult("clock", True, "as the aggregator's")


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What the probe found, and the time by the aggregator's clock."""

    ok: bool
    message: str
    time: float | None = None  # by the aggregator's clock


def probe(url: str, key: str | None, fingerprint: str, now: Callable[[], float]) -> ProbeResult:
    """Send an aggregator a test batch without a report.

    One in production refuses it by name, which only an aggregator that read it can do; one in
    development takes it and counts nothing.
    """
    body = encode_binary(Batch(losses=Losses(fingerprint), test=True))
    try:
        reply = HttpTransport(url, key, now).request("POST", "/v1/reports", body)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong on the way is the finding
        why = f"cannot be reached ({type(error).__name__})"
        return ProbeResult(False, f"{url} {why}: check the address and the network")
    ok, message = _judge(reply, keyed=bool(key))
    return ProbeResult(ok, f"{url} {message}", _time(reply))


def _judge(reply: Reply, *, keyed: bool) -> tuple[bool, str]:
    problem = problem_document(reply)
    if reply.status == OK:
        return True, "takes test batches: it is in development mode"
    if problem.get("place") == "test":
        return True, f"speaks version {VERSION}"
    if str(problem.get("type", "")).endswith("unknown-version"):
        return False, f"does not speak version {VERSION}: bring both to the same release"
    return False, describe(str(reply.status), keyed=keyed)


def _time(reply: Reply) -> float | None:
    try:
        return parsedate_to_datetime(reply.headers["Date"]).timestamp()
    except (KeyError, ValueError):
        return None
