"""Why nothing left this machine: `python -m veilcount_client doctor`.

It looks and changes nothing: no ceiling is set, no report is sent, and a state that is not there is
not made. What it asks is a test batch without a report of the aggregator, an envelope that holds
none of a shuffler, and no token of an issuer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path

from veilcount_shared import load_collections
from veilcount_shared.diagnostic_result import DiagnosticResult
from veilcount_shared.errors import VeilcountError

from ..clock import SystemClock, instant
from ..delivery.transport import HttpTransport, Reply, in_clear, malformed
from ..settings import JITTER, ClientSettings
from ..state.factory import state_location
from . import problems
from .problems import Collections
from .server_checks import check_relay, check_shuffler, check_tokens, empty_batch, judge_reply
from .state_checks import check_state

GRACE = JITTER  # a clock that is off by more shows in when its periods begin: it marks the device


def examine(
    settings: ClientSettings, now: Callable[[], float] = SystemClock.now, account: str | None = None
) -> Iterator[DiagnosticResult]:
    """Yield what was found, in the order in which it would have to be mended."""
    problem = problems.kill_switch(settings)
    yield DiagnosticResult.from_problem("kill switch", problem, "none is set")
    collections, loaded = _definitions(settings)
    yield loaded
    if collections:
        yield from _campaigns(collections, now())
        yield from _state(settings, collections, now())
    if collections and all(collection.batch for collection in collections.values()):
        pass  # nothing goes to an aggregator from here
    elif settings.relay is None:
        yield from _aggregator(settings, collections, now)
    else:
        yield from check_relay(settings, _any_fingerprint(collections), now)
    yield from check_shuffler(settings, collections, now)
    yield from check_tokens(settings, collections, account, now)


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
    for name, collection in collections.items():
        running = f"it is {today}, the campaign runs until {collection.until}"
        problem = problems.campaign(collection, now)
        yield DiagnosticResult.from_problem(f"clock, {name}", problem, running)


def _state(
    settings: ClientSettings, collections: Collections, now: float
) -> Iterator[DiagnosticResult]:
    """Check the state; in development each process has its own, without ceilings and caps."""
    if settings.development:
        message = "development: a temporary one of each process, which is not examined"
        yield DiagnosticResult("state", True, message)
        return
    place = state_location(settings, next(iter(collections.values())).app)
    yield from check_state(place, settings, collections, now)


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
    answer = probe(settings.url, settings.key, _any_fingerprint(collections), now)
    yield DiagnosticResult("aggregator", answer.ok, answer.message)
    if answer.time is None:
        return
    apart = now() - answer.time
    if abs(apart) > GRACE:
        message = f"{apart / 3600:+,.1f} hours from the aggregator's: let NTP set this clock"
        yield DiagnosticResult("clock", False, message)
    else:
        yield DiagnosticResult("clock", True, "as the aggregator's")


def _any_fingerprint(collections: Collections) -> str:
    return next((collection.fingerprint for collection in collections.values()), "0" * 64)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What the probe found, and the time by the aggregator's clock."""

    ok: bool
    message: str
    time: float | None = None  # by the aggregator's clock


def probe(url: str, key: str | None, fingerprint: str, now: Callable[[], float]) -> ProbeResult:
    """Send an aggregator a test batch without a report."""
    body = empty_batch(fingerprint)
    try:
        reply = HttpTransport(url, key, now).request("POST", "/v1/reports", body)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong on the way is the finding
        why = f"cannot be reached ({type(error).__name__})"
        return ProbeResult(False, f"{url} {why}: check the address and the network")
    ok, message = judge_reply(reply, keyed=bool(key))
    return ProbeResult(ok, f"{url} {message}", _time(reply))


def _time(reply: Reply) -> float | None:
    try:
        return parsedate_to_datetime(reply.headers["Date"]).timestamp()
    except (KeyError, ValueError):
        return None
