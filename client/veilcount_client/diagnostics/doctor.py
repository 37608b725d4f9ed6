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
from ..settings import JITTER, Settings
from ..state.location import place_of
from ..transport_security import in_clear
from .finding import DiagnosticResult
from .server_probe import call
from .state_checks import look

GRACE = JITTER  # a clock that is off by more shows in when its periods begin: it marks the device


def examine(
    settings: Settings, now: Callable[[], float] = SystemClock.now
) -> Iterator[DiagnosticResult]:
    """Yield what was found, in the order in which it would have to be mended."""
    yield _switches(settings)
    collections, loaded = _definitions(settings)
    yield loaded
    if collections:
        yield from _dates(collections, now())
        place = place_of(settings, next(iter(collections.values())).app)
        yield from look(place, settings, collections, now())
    yield from _aggregator(settings, collections, now)


def _switches(settings: Settings) -> DiagnosticResult:
    if settings.disabled:
        return DiagnosticResult(
            "kill switch", False, f"{settings.disabled} is set: unset it to record anything"
        )
    return DiagnosticResult("kill switch", True, "none is set")


def _definitions(settings: Settings) -> tuple[Mapping[str, Collection], DiagnosticResult]:
    if settings.collections is None:
        says = "none: give --collections or VEILCOUNT_COLLECTIONS the path of your file"
        return {}, DiagnosticResult("definitions", False, says)
    try:
        collections = load_collections(settings.collections)
    except VeilcountError as error:
        return {}, DiagnosticResult("definitions", False, str(error))
    if not collections:
        says = f"{Path(settings.collections).name} has none: add a table for each question"
        return {}, DiagnosticResult("definitions", False, says)
    return collections, DiagnosticResult("definitions", True, ", ".join(collections))


def _dates(collections: Mapping[str, Collection], now: float) -> Iterator[DiagnosticResult]:
    """Yield for each campaign whether it is running, as this machine's clock has it."""
    today = instant(now).date()
    for name, each in collections.items():
        about = f"clock, {name}"
        if today < each.start:
            says = f"it is {today}, the campaign starts {each.start}: wait, or set the clock"
            yield DiagnosticResult(about, False, says)
        elif today >= each.until:
            says = f"it is {today}, the campaign ended {each.until}: ship new dates, or set the"
            yield DiagnosticResult(about, False, f"{says} clock")
        else:
            yield DiagnosticResult(
                about, True, f"it is {today}, the campaign runs until {each.until}"
            )


def _aggregator(
    settings: Settings, collections: Mapping[str, Collection], now: Callable[[], float]
) -> Iterator[DiagnosticResult]:
    if settings.url is None:
        says = "none: give --url or VEILCOUNT_URL its address"
        yield DiagnosticResult("aggregator", False, says)
        return
    if why := in_clear(settings.url, settings.key):
        yield DiagnosticResult("address", False, why)
        if settings.key:  # it is not shown to others to look further
            return
    fingerprint = next((each.fingerprint for each in collections.values()), "0" * 64)
    called = call(settings.url, settings.key, fingerprint, now)
    yield DiagnosticResult("aggregator", called.well, called.says)
    if called.time is None:
        return
    apart = now() - called.time
    if abs(apart) > GRACE:
        says = f"{apart / 3600:+,.1f} hours from the aggregator's: let NTP set this clock"
        yield DiagnosticResult("clock", False, says)
    else:
        yield DiagnosticResult("clock", True, "as the aggregator's")
