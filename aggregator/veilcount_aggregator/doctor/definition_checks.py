"""What is asked: definitions that end, that say more than was meant, and periods that are full."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from veilcount_shared import lint

from ..series.series import Series
from ..store import MemoryLimits, MemoryUse
from ..store.memory_limit import worst_case
from ..text.byte_sizes import format_bytes
from ..text.privacy_guarantees import counts_are_public
from .finding import CheckResult, ok, problems_or_ok, warn, wrong
from .store_snapshot import StoreSnapshot

SOON = timedelta(days=14)
NEARLY = 0.8  # of the room of a period


def definitions(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Look at what is asked now: has it ended, does it end soon?"""
    named, running = stored.catalog.by_name, stored.open_series
    if not named:
        yield warn("there are no collections", "`veilcount collections push FILE`")
    elif not running:
        yield warn(
            f"all of {len(named)} collections have ended or are closed: no report is counted",
            "`veilcount collections push FILE` with later dates",
        )
    else:
        complaints = (told for series in running for told in _ending(stored, series))
        yield from problems_or_ok(
            complaints, f"{len(running)} of {len(named)} collections are open"
        )


def remarks(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Look for what the author of a definition may not have meant."""
    complaints = (
        warn(f"{each.collection.name}, {remark.key}: {remark.text}", "mend it, or accept it")
        for each in stored.open_series
        for remark in lint(each.collection)
    )
    yield from problems_or_ok(complaints, "no remark on any definition")


def new_pseudonyms(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Look at how many new pseudonyms each period may still bring."""
    public = [each for each in stored.open_series if counts_are_public(each.collection)]
    complaints = (told for series in public for told in _room(stored, series))
    yield from problems_or_ok(
        complaints,
        f"no period is near the limit of new pseudonyms: {stored.settings.max_new_pseudonyms:,}",
    )


def memory(stored: StoreSnapshot) -> Iterator[CheckResult]:
    """Look at what counters take, and may take at most, of the memory there is for them."""
    settings, use = stored.settings, stored.store.memory_use()
    limits = MemoryLimits(settings.max_series_memory, settings.max_store_memory)
    limit, total = use.series_limit(limits), use.store_limit(limits)
    worst = sum(worst_case(each.collection, use.shards) for each in stored.open_series)
    complaints = [
        *(finding for each in stored.open_series for finding in _memory(each, use, limit)),
        *(_store_memory(use.total, total) if total is not None and not stored.secret else ()),
    ]
    shards = f" in {use.shards} shards" if use.shards > 1 else ""
    held = f"each is held to {format_bytes(limit)}"
    held += f", all to {format_bytes(total)}" if total is not None else ""
    yield from problems_or_ok(
        complaints, f"open collections' counters take at most {format_bytes(worst)}{shards}; {held}"
    )


def _memory(series: Series, use: MemoryUse, limit: int) -> Iterator[CheckResult]:
    name, held = series.collection.name, use.series.get(series.fingerprint, 0)
    worst = worst_case(series.collection, use.shards)
    fix = "raise --max-series-memory (and maxmemory), or ask fewer values, segments or periods"
    public = counts_are_public(series.collection)
    if public and held >= NEARLY * limit:
        yield wrong(f"{name}: counters take {format_bytes(held)} of {format_bytes(limit)}", fix)
    elif worst > limit:
        yield warn(
            f"{name}: counters may come to {format_bytes(worst)}: beyond {format_bytes(limit)}"
            " reports are full",
            fix,
        )


def _store_memory(held: int, limit: int) -> Iterator[CheckResult]:
    if held >= NEARLY * limit:
        yield wrong(
            f"all counters take {format_bytes(held)} of {format_bytes(limit)}",
            "raise Redis's maxmemory or --max-store-memory: beyond it, new tallies are full",
        )


def _ending(stored: StoreSnapshot, series: Series) -> Iterator[CheckResult]:
    collection = series.collection
    left = collection.until - stored.today
    if left <= timedelta(0):
        yield ok(f"{collection.name} is over since {collection.until}: late reports alone count")
    elif left <= SOON:
        yield warn(
            f"{collection.name} ends on {collection.until}",
            "a definition with later dates has to reach the devices before",
        )


def _room(stored: StoreSnapshot, series: Series) -> Iterator[CheckResult]:
    most = max(stored.store.new_pseudonyms(series).values(), default=0)
    name, limit = series.collection.name, stored.settings.max_new_pseudonyms
    fix = "raise --max-new-pseudonyms of `veilcount serve`; if unexpected, look for a flood"
    if most >= limit:
        yield wrong(f"{name}: a period has had all of its {limit:,} new pseudonyms", fix)
    elif most >= NEARLY * limit:
        yield warn(f"{name}: a period has had {most:,} of {limit:,} new pseudonyms", fix)
