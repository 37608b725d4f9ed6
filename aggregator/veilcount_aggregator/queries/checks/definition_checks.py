"""Checks of definitions: their end, likely mistakes, and limits that are soon reached."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from veilcount_analysis.series.series import Series
from veilcount_analysis.text.number_format import format_bytes
from veilcount_analysis.text.privacy_guarantees import counts_are_public
from veilcount_serving.findings import CheckResult, ok, or_ok, problems_or_ok, warn, wrong
from veilcount_shared import lint

from ...records.counter_admission import RAISE, AdmittedMemory
from ...settings import Settings
from ..published_figures import unpublished
from ..snapshot import Snapshot
from .store_snapshot import StoreSnapshot

SOON = timedelta(days=14)
HOUR = 3_600  # seconds
AGAINST_FLOODS = (
    "limit what one network may send, as deploy/nginx.conf does: then it takes many networks; name"
    " networks that flood in --source-classes, or require device keys"
)
NEARLY = 0.8  # of a limit


def definitions(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check for collections that have ended or end soon."""
    named, running = stored.catalog.by_name, stored.open_series
    if not named:
        yield warn("there are no collections", "`veilcount collections push FILE`")
    elif not running:
        yield warn(
            f"all {len(named)} collections have ended or are closed: no report is counted",
            "`veilcount collections push FILE` with later dates",
        )
    else:
        problems = (problem for series in running for problem in _ending(stored, series))
        yield from problems_or_ok(
            problems, f"{len(running)} of {len(named)} collections have not ended"
        )


@or_ok("no remark on any definition")
def remarks(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check for settings that the author of a definition may not have intended."""
    for open_sery in stored.open_series:
        for remark in lint(open_sery.collection):
            text = f"{open_sery.collection.name}, {remark.key}: {remark.text}"
            yield warn(text, "change or accept it")


def published(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check that something is published of each name in the settings."""
    names = stored.settings.publish
    snapshot = Snapshot(stored.catalog, stored.store, stored.today)
    fix = "correct --publish, or push the definition: until then /public/ lacks it"
    problems = (warn(problem, fix) for problem in unpublished(snapshot, names))
    yield from problems_or_ok(problems, f"{len(names)} collections, under /public/")


def new_pseudonyms(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Compare the new pseudonyms of each period with their limit."""
    public = [
        open_sery for open_sery in stored.open_series if counts_are_public(open_sery.collection)
    ]
    problems = (problem for series in public for problem in _pseudonyms(stored, series))
    limit = f"{stored.settings.max_new_pseudonyms:,}"
    yield from problems_or_ok(problems, f"no period is near the limit of {limit} new pseudonyms")


def floods(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Check how few bodies, which anybody can send, keep new devices out."""
    settings = stored.settings
    if not stored.api_keys.intake_is_open:
        yield ok("reports need a device key, and each key has a quota of its own")
    elif all(series.has_tokens for series in stored.open_series):
        yield ok("no open collection takes new pseudonyms without a token")
    elif settings.source_classes:
        yield ok(f"each of {len(settings.source_classes) + 1} source classes has its own quota")
    else:
        yield warn(_cheapest_flood(settings), AGAINST_FLOODS)


def _cheapest_flood(settings: Settings) -> str:
    """Return how many bodies without a key close collections to new devices."""
    hourly, per_body = settings.max_new_pseudonyms_per_hour, settings.max_pseudonyms_per_body
    if not hourly:
        bodies = -(-settings.max_new_pseudonyms // per_body)
        return f"{bodies:,} bodies without a key close a period of a collection to new devices"
    bodies = -(-hourly // per_body)
    return (
        f"{bodies:,} bodies without a key, {bodies / HOUR:.0f} a second, close a collection to new"
        " devices for the rest of each hour"
    )


def memory(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Compare what counters can need with the limit as it is now: it may have been lowered."""
    admitted = AdmittedMemory.from_store(
        stored.store,
        stored.catalog.series.values(),
        stored.today,
        stored.settings.max_counter_memory,
    )
    needs = f"counters can need {format_bytes(admitted.needs)}"
    if admitted.limit is None:
        yield ok(f"{needs}; no limit is set")
    elif admitted.fits:
        yield ok(f"{needs} of {format_bytes(admitted.limit)}")
    else:
        yield warn(
            f"{needs}, and the limit is {format_bytes(admitted.limit)}: when Redis is full, reports"
            " of all collections wait on devices",
            f"raise the limit ({RAISE}), or close collections that nobody needs",
        )


def _ending(stored: StoreSnapshot, series: Series) -> Iterator[CheckResult]:
    collection = series.collection
    left = collection.until - stored.today
    if left <= timedelta(0):
        yield ok(f"{collection.name} ended on {collection.until}: only late reports count")
    elif left <= SOON:
        yield warn(
            f"{collection.name} ends on {collection.until}",
            "ship a definition with later dates before that",
        )


def _pseudonyms(stored: StoreSnapshot, series: Series) -> Iterator[CheckResult]:
    most = max(stored.store.new_pseudonyms(series).values(), default=0)
    name, limit = series.collection.name, stored.settings.max_new_pseudonyms
    fix = "raise --max-new-pseudonyms of `veilcount serve`; if unexpected, look for a flood"
    if most >= limit:
        yield wrong(f"{name}: a period has reached its limit of {limit:,} new pseudonyms", fix)
    elif most >= NEARLY * limit:
        yield warn(f"{name}: a period has {most:,} of {limit:,} new pseudonyms", fix)
