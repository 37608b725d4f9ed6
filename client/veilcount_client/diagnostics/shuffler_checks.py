"""What `doctor` finds on the way to a shuffler: the route, the keys of this period, its reply."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from veilcount_shared import Collection, schedule
from veilcount_shared.diagnostic_result import DiagnosticResult
from veilcount_shared.oblivious_http.key_file import key_for
from veilcount_shared.shuffling.crowd import CROWD_BYTES
from veilcount_shared.shuffling.envelope import ENVELOPE_TYPE, Envelope

from ..clock import instant
from ..delivery.replies import describe_shuffler
from ..delivery.shuffler import PATH, ShufflerTransport
from ..delivery.shuffler_route import ShufflerRoute
from ..delivery.transport import problem_document
from ..settings import ClientSettings
from .problems import Collections

NO_CROWD = Envelope(bytes(CROWD_BYTES), 0, b"").encode()  # that no shuffler serves
NOT_SERVED = 404


def check_shuffler(
    settings: ClientSettings, collections: Collections, now: Callable[[], float]
) -> Iterator[DiagnosticResult]:
    """Yield what was found, if a collection travels by shuffler; it is sent no report."""
    in_batches = [collection for collection in collections.values() if collection.batch]
    if not in_batches:
        return
    route = ShufflerRoute(settings, settings.development)
    if route.problem:
        yield DiagnosticResult("shuffler", False, route.problem)
        return
    for collection in in_batches:
        yield _key(route, collection, now())
    if route.in_clear:
        yield DiagnosticResult("shuffler", False, route.in_clear)
    else:
        yield _reply(settings, now)


def _key(route: ShufflerRoute, collection: Collection, now: float) -> DiagnosticResult:
    """Return whether the period that is running has a key."""
    period = schedule.period_at(collection, instant(now)) or 0
    first_day = schedule.period_start(collection, period).date()
    key = key_for(route.keys, first_day)
    subject = f"shuffler, {collection.name}"
    if key is None:
        message = (
            f"no key of relay_keys is for the period that begins on {first_day}, so it is not"
            " answered: ship a file whose keys begin earlier"
        )
        return DiagnosticResult(subject, False, message)
    message = (
        f"reports travel by {route.settings.shuffler_host}, sealed under key {key.config.key_id}"
    )
    return DiagnosticResult(subject, True, message)


def _reply(settings: ClientSettings, now: Callable[[], float]) -> DiagnosticResult:
    url = settings.shuffler or ""
    try:
        reply = ShufflerTransport(url, now).request("POST", PATH, NO_CROWD, ENVELOPE_TYPE)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong on the way is the finding
        return DiagnosticResult(
            "shuffler", False, f"{url} {describe_shuffler(type(error).__name__)}"
        )
    if reply.status == NOT_SERVED and problem_document(reply):
        return DiagnosticResult("shuffler", True, f"{url} takes envelopes")
    return DiagnosticResult("shuffler", False, f"{url} {describe_shuffler(str(reply.status))}")
