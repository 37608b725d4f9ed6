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
from contextlib import suppress

from flask import Response

from ..auth.api_keys import Role
from ..catalog.cache import KEYS_SECONDS
from ..central.journal_registry import unconfirmed_journals
from ..errors import StoreError
from ..retention.retention_guard import DROPPED
from ..service import Aggregator
from ..store import ServiceCounter, Store, StoreHealth
from ..store.restore_lock import release_lock_reason
from ..text.privacy_guarantees import counts_are_public
from .collection_metrics import memory_metrics, poisoning_metrics, pseudonym_metrics, report_metrics
from .endpoint import Api, endpoint
from .exposition import metric
from .fake_report_flags import FakeReportFlags
from .service_metrics import service_metrics
from .shard_metrics import queue_metrics, shard_metrics
from .verdict_counts import counts_by_series

TYPE = "text/plain; version=0.0.4"


@endpoint("GET", "/metrics", Role.ANALYST, returns=TYPE, problems=("busy",), stale_keys=True)
def show_metrics(api: Api) -> Response:
    """Metrics of the service for Prometheus, summed over all workers."""
    lines = api.metrics_gate.bounded(_lines)(api)
    return Response("".join(lines), content_type=TYPE)


def _lines(api: Api) -> list[str]:
    aggregator = api.aggregator
    lines = [*shard_metrics(aggregator.store.shards()), *_analysis_is_up(api.analysis_is_up)]
    if not aggregator.watch.is_fresh(KEYS_SECONDS):
        return lines
    with suppress(StoreError):  # written with the next second; what is written is shown
        aggregator.flush()
    try:
        lines += list(exposition(aggregator, api.fake_report_flags))
    except StoreError:  # no shard responds, or one just went away: the lines above show it
        lines += _complete(complete=False)
    return lines


def exposition(aggregator: Aggregator, flags: FakeReportFlags) -> Iterator[str]:
    """Yield the lines; the intake as a whole only where it tells nothing of a secret count."""
    store, complete = aggregator.store.reachable_part()
    noted = store.service_counts()
    series = aggregator.known().catalog.series
    secret = [each for each in series.values() if not counts_are_public(each.collection)]
    yield from _complete(complete=complete)
    yield from _store(aggregator.store.health())
    yield from _locked(aggregator.store)
    yield from _clock(aggregator)
    if complete:
        counts = counts_by_series(noted)
        yield from report_metrics(store, series, counts)
        yield from pseudonym_metrics(store, series, counts)
        yield from _dropped(noted)
        yield from memory_metrics(aggregator, store, series, public=not secret)
    yield from poisoning_metrics(store, series, flags)
    if not secret:
        yield from queue_metrics(aggregator.committer.queues())
    if complete:
        yield from service_metrics(_by_what(noted), intake=not secret)


def _complete(*, complete: bool) -> Iterator[str]:
    says = "1: all shards answer. 0: counters pause until they do."
    yield from metric("figures_complete", "gauge", says, [((), int(complete))])


def _by_what(noted: Mapping[ServiceCounter, int]) -> dict[str, Counter[str]]:
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for note, number in noted.items():
        found[note.what][note.word] += number
    return found


def _store(health: StoreHealth) -> Iterator[str]:
    labels = (("engine", health.engine), ("durable", health.durable))
    yield from metric("store", "gauge", "The store, 1.", [(labels, 1)])
    read_only = "1: the store takes no reports."
    yield from metric("store_read_only", "gauge", read_only, [((), int(health.read_only))])
    blocked = "1: reports are refused until what is acknowledged is durable again."
    yield from metric("store_blocked", "gauge", blocked, [((), int(health.blocked))])
    writable = "0: the last write failed, or a page is damaged; /readyz says which."
    yield from metric("store_writable", "gauge", writable, [((), int(not health.trouble))])


def _clock(aggregator: Aggregator) -> Iterator[str]:
    """Yield how far this worker's host is ahead of the store, and how retention fares."""
    reading = aggregator.guard.reading
    off, spread = reading.off.total_seconds(), reading.spread.total_seconds()
    ahead = "Seconds by which this host's clock is ahead of what it should show."
    waits = "1: retention waits for the day to be confirmed (`store confirm-clock`)."
    between = "Seconds between the clocks of the store's servers."
    yield from metric("clock_skew_seconds", "gauge", ahead, [((), round(off, 3))])
    yield from metric("clock_spread_seconds", "gauge", between, [((), round(spread, 3))])
    waiting = int(aggregator.retention.waiting)
    yield from metric("retention_waiting", "gauge", waits, [((), waiting)])


def _dropped(noted: Mapping[ServiceCounter, int]) -> Iterator[str]:
    """Yield how many epochs retention has dropped."""
    dropped = [((), noted.get(DROPPED, 0))]
    yield from metric("dropped_epochs_total", "counter", "Epochs that were dropped.", dropped)


def _locked(store: Store) -> Iterator[str]:
    """Yield whether releases are locked, or wait, where that can be read."""
    try:
        is_locked, pending = (
            release_lock_reason(store) is not None,
            len(unconfirmed_journals(store)),
        )
    except StoreError:
        return
    waits = "1: central releases wait for `store unlock`."
    yield from metric("releases_locked", "gauge", waits, [((), int(is_locked))])
    says = "Journals that have not confirmed the store as it is: central releases wait for them."
    yield from metric("release_journals_pending", "gauge", says, [((), pending)])


def _analysis_is_up(is_up: Callable[[], bool] | None) -> Iterator[str]:
    says = "1: what analysts ask of this server is answered."
    up = is_up is None or is_up()  # without a process of its own, by whoever answers this
    yield from metric("analysis_up", "gauge", says, [((), int(up))])
