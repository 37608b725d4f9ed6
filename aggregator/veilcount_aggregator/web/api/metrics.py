"""Endpoint of Prometheus metrics, summed over all workers by the store.

A shard that is away does not take the state of the others along. Counters are sums over all shards,
though: with a part missing they would fall and rise again, and every rate over them would see all
its reports come at once. So they pause until they are complete; `figures_complete` says so. While
keys cannot be read again, only how the shards are is shown: the key that asks may be revoked.

Behind a key, since they tell how many reports there are. Where a trusted curator's collection must
not tell that, its own figures are left out, and so are those of the intake as a whole, which would
tell it by subtraction.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError

from flask import Response

from veilcount_analysis.series.series import Series
from veilcount_analysis.text.privacy_guarantees import counts_are_public
from veilcount_shared.wire import VERSION

from ...errors import StoreError
from ...records.api_keys import Role
from ...records.cache import KEYS_SECONDS
from ...records.service_counters import counts_by_series
from ...records.shuffled_batches.batch_counts import BATCH, UNFINISHED, UNREADABLE
from ...records.shuffled_batches.batch_states import missing_parts
from ...releases.store_confirmation import unconfirmed_journals
from ...service import Aggregator
from ...store import BatchStore, RecordStore, ServiceCounter, StoreHealth
from ...store.restore_lock import release_lock_reason
from ...store.retention.retention_guard import DROPPED
from ...store.store_probe import StoreProbe
from .collection_metrics import (
    FakeReportFlags,
    memory_metrics,
    poisoning_metrics,
    pseudonym_metrics,
    public_report_counts,
    report_metrics,
)
from .endpoint import Api, endpoint
from .exposition import Labels, gauge, metric
from .service_metrics import Words, queue_metrics, service_metrics, shard_metrics
from .version import installed_version

TYPE = "text/plain; version=0.0.4"


@endpoint(
    "GET",
    "/metrics",
    Role.ANALYST,
    returns=TYPE,
    problems=("busy",),
    stale_keys=True,
    every_app=True,
)
def show_metrics(api: Api) -> Response:
    """Metrics of the service for Prometheus, summed over all workers."""
    lines = api.metrics_gate.bounded(_lines)(api)
    return Response("".join(lines), content_type=TYPE)


def _lines(api: Api) -> list[str]:
    aggregator = api.aggregator
    lines = [*shard_metrics(aggregator.store.shards()), *_analysis_is_up(api.analysis_is_up)]
    if not aggregator.catalog_cache.is_fresh(KEYS_SECONDS):
        return lines
    try:
        health = _bounded_health(api.probe)
        lines += list(exposition(aggregator, health, api.fake_report_flags, api.intake.waiting))
    except StoreError:  # no shard responds, or one just went away: the lines above show it
        lines += _complete(complete=False)
    return lines


def _bounded_health(probe: StoreProbe) -> StoreHealth | None:
    """Return the store's health; None: its last write waits for a lock, as one of ours would."""
    try:
        return probe.health()
    except FutureTimeoutError:
        return None


def exposition(
    aggregator: Aggregator, health: StoreHealth | None, flags: FakeReportFlags, waiting: int
) -> Iterator[str]:
    """Yield the lines; the intake as a whole only where it tells nothing of a secret count."""
    store, complete = aggregator.store.reachable_part()
    noted = store.service_counts()
    series = aggregator.known().catalog.series
    secret = [value for value in series.values() if not counts_are_public(value.collection)]
    yield from _build()
    yield from _complete(complete=complete)
    yield from _store(health) if health else _writable(0)
    yield from _locked(aggregator.store)
    yield from _clock(aggregator)
    if complete:
        counts = counts_by_series(noted)
        reports_by_cell = public_report_counts(store, series)
        yield from report_metrics(reports_by_cell, series, counts)
        yield from pseudonym_metrics(store, series, counts)
        yield from _dropped(noted)
        yield from memory_metrics(aggregator, series, reports_by_cell)
    yield from poisoning_metrics(store, series, flags)
    if not secret:
        yield from queue_metrics(waiting)
    if complete:
        yield from service_metrics(_by_what(noted), intake=not secret)
        yield from batch_metrics(store, series, _by_what(noted))


def _complete(*, complete: bool) -> Iterator[str]:
    help_text = "1: all shards answer. 0: counters pause until they do."
    yield from gauge("figures_complete", help_text, int(complete))


def _by_what(noted: Mapping[ServiceCounter, int]) -> dict[str, Counter[str]]:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for note, number in noted.items():
        counts[note.what][note.word] += number
    return counts


def _store(health: StoreHealth) -> Iterator[str]:
    labels = (("engine", health.engine), ("durable", health.durable))
    yield from metric("store", "gauge", "The store, 1.", [(labels, 1)])
    yield from gauge("store_read_only", "1: the store takes no reports.", int(health.read_only))
    blocked = "1: reports are refused until what is acknowledged is durable again."
    yield from gauge("store_blocked", blocked, int(health.blocked))
    yield from _writable(int(not health.trouble))


def _writable(writable: int) -> Iterator[str]:
    says = "0: the last write failed or did not end, or a page is damaged; /readyz says which."
    yield from gauge("store_writable", says, writable)


def _clock(aggregator: Aggregator) -> Iterator[str]:
    """Yield how far this worker's host is ahead of the store, and how retention fares."""
    reading = aggregator.guard.reading
    ahead = "Seconds by which this host's clock is ahead of what it should show."
    yield from gauge("clock_skew_seconds", ahead, round(reading.off.total_seconds(), 3))
    between = "Seconds between the clocks of the store's servers."
    yield from gauge("clock_spread_seconds", between, round(reading.spread.total_seconds(), 3))
    waits = "1: retention waits for the day to be confirmed (`store confirm-clock`)."
    yield from gauge("retention_waiting", waits, int(aggregator.retention.waiting))


def _dropped(noted: Mapping[ServiceCounter, int]) -> Iterator[str]:
    dropped = [((), noted.get(DROPPED, 0))]
    yield from metric("dropped_epochs_total", "counter", "Epochs that were dropped.", dropped)


def _locked(store: RecordStore) -> Iterator[str]:
    """Yield whether releases are locked, or wait, where that can be read."""
    try:
        lock_reason, pending = release_lock_reason(store), len(unconfirmed_journals(store))
    except StoreError:
        return
    locked = "1: central releases wait for `store unlock`."
    yield from gauge("releases_locked", locked, int(lock_reason is not None))
    waits = "Journals that have not confirmed the store as it is: central releases wait for them."
    yield from gauge("release_journals_pending", waits, pending)


def _build() -> Iterator[str]:
    """Yield which version answers, of which protocol: during an upgrade there are two."""
    labels = (("version", installed_version()), ("protocol", str(VERSION)))
    yield from metric("build_info", "gauge", "The version of the scraped server, 1.", [(labels, 1)])


def _analysis_is_up(is_up: Callable[[], bool] | None) -> Iterator[str]:
    up = is_up is None or is_up()  # without a process of its own, by whoever answers this
    yield from gauge("analysis_up", "1: what analysts ask of this server is answered.", int(up))


def batch_metrics(store: BatchStore, series: Mapping[str, Series], words: Words) -> Iterator[str]:
    """Yield refused parts by reason, what could not be read, and what is missing."""
    counts = words.get(BATCH, {})
    others = {UNFINISHED, UNREADABLE}
    refused = [((("reason", word),), n) for word, n in counts.items() if word not in others]
    says = "Parts and records of batches that were refused, by reason."
    yield from metric("batches_refused_total", "counter", says, refused)
    says = "Reports in batches that could not be read."
    rows = [((), counts.get(UNREADABLE, 0))]
    yield from metric("batch_unreadable_total", "counter", says, rows)
    says = "Batches that were dropped since parts never came."
    rows = [((), counts.get(UNFINISHED, 0))]
    yield from metric("batches_unfinished_total", "counter", says, rows)
    missing: Counter[Labels] = Counter()
    for one_series in series.values():
        if one_series.collection.batch is not None:
            label = ("collection", one_series.collection.name)
            missing[(label,)] += missing_parts(store, one_series)
    says = "Parts of batches that have begun and are not complete."
    yield from metric("batch_parts_missing", "gauge", says, missing.items())
