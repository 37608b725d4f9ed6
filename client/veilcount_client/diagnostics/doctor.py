"""Why nothing left this machine: `python -m veilcount_client doctor`.

It looks and changes nothing: no ceiling is set, no report is sent, and a state that is not there is
not made. What it asks the aggregator is a test batch without a report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from veilcount_shared import Collection, load_collections
from veilcount_shared.errors import VeilcountError

from ..clock import SystemClock, instant
from ..settings import JITTER, ClientSettings
from ..state.location import state_location
from ..transport_security import in_clear
from . import problems
from .result import DiagnosticResult
from .server_probe import probe
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


def _definitions(settings: ClientSettings) -> tuple[Mapping[str, Collection], DiagnosticResult]:
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


def _campaigns(collections: Mapping[str, Collection], now: float) -> Iterator[DiagnosticResult]:
    """Yield for each campaign whether it is running, as this machine's clock has it."""
    today = instant(now).date()
    for name, each in collections.items():
        running = f"it is {today}, the campaign runs until {each.until}"
        problem = problems.campaign(each, now)
        yield DiagnosticResult.from_problem(f"clock, {name}", problem, running)


def _aggregator(
    settings: ClientSettings, collections: Mapping[str, Collection], now: Callable[[], float]
) -> Iterator[DiagnosticResult]:
    if settings.url is None:
        message = "none: give --url or VEILCOUNT_URL its address"
        yield DiagnosticResult("aggregator", False, message)
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
