"""The figures of the service as Prometheus reads them, summed over all workers by the store.

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

from flask import Blueprint, Response, request

from ..aggregator import Aggregator
from ..commit import COMMIT_MICROSECONDS, COMMITS, GROUP
from ..errors import StoreError
from ..ingest import POSTPONED
from ..journal_registry import waited_for
from ..promises import counts_are_public
from ..retention import DROPPED
from ..series import Series
from ..store import Health, MemoryLimits, Note, Store
from ..store.lock import locked
from ..watching import KEYS_SECONDS
from .authority import Authority
from .computation_gate import ComputationGate
from .counts import Counts, counts_by_series
from .exposition import Labels, head, line, metric
from .figures import ANSWERED, MICROSECONDS, REFUSED, UNANALYZED, WORDS
from .reports import DOOR
from .shard_metrics import commit_metrics, queue_metrics, shard_metrics
from .suspicion import Suspicion, tested

TYPE = "text/plain; version=0.0.4"
UNKNOWN = "(unknown)"  # no collection can be named so

Words = Mapping[str, Mapping[str, int]]


def doors(
    aggregator: Aggregator,
    authority: Authority,
    analysis_is_up: Callable[[], bool] | None = None,
) -> Blueprint:
    """Return the door."""
    blueprint = Blueprint("metrics", __name__)
    suspicion = Suspicion()
    one_at_a_time = ComputationGate(places=1)  # a worker answers this, beside the intake

    @blueprint.get("/metrics")
    def show() -> Response:
        """All figures, as of now."""
        authority.admit_for_state(request.headers.get("Authorization", ""))
        return Response("".join(figures()), content_type=TYPE)

    @one_at_a_time.bounded
    def figures() -> list[str]:
        lines = [*shard_metrics(aggregator.store.shards()), *_analysis_is_up(analysis_is_up)]
        if not aggregator.watch.is_fresh(KEYS_SECONDS):
            return lines
        with suppress(StoreError):  # it is written with the next second; what is written is shown
            aggregator.flush()
        try:
            lines += list(exposition(aggregator, suspicion))
        except StoreError:  # no shard answers, or one went away just now: the lines above tell
            lines += _complete(complete=False)
        return lines

    return blueprint


def exposition(aggregator: Aggregator, suspicion: Suspicion) -> Iterator[str]:
    """Yield the lines; the intake as a whole only where it tells nothing of a secret count."""
    store, complete = aggregator.store.answering()
    noted = store.noted()
    series = aggregator.known().catalogue.series
    secret = [each for each in series.values() if not counts_are_public(each.collection)]
    yield from _complete(complete=complete)
    yield from _store(aggregator.store.health())
    yield from _locked(aggregator.store)
    yield from _clock(aggregator)
    if complete:
        counts = counts_by_series(noted)
        yield from _reports(store, series, counts)
        yield from _new_pseudonyms(store, series, counts)
        yield from _dropped(noted)
        yield from _memory(aggregator, store, series, public=not secret)
    yield from _suspicious(store, series, suspicion)
    if not secret:
        yield from queue_metrics(aggregator.committer.queues())
    if complete:
        yield from _counters(_by_what(noted), intake=not secret)


def _complete(*, complete: bool) -> Iterator[str]:
    says = "1: all shards answer. 0: counters pause until they do."
    yield from metric("figures_complete", "gauge", says, [((), int(complete))])


def _counters(words: Words, *, intake: bool) -> Iterator[str]:
    """Yield what the service counted of itself, over all workers."""
    yield from _service(words, intake=intake)
    yield from _analysis_refused(words)
    if intake:
        yield from commit_metrics(words.get(COMMITS, {}), words.get(COMMIT_MICROSECONDS, {}))
        postponed = [((), sum(words.get(POSTPONED, {}).values()))]
        says = "Reports that devices send again, since their shard was away."
        yield from metric("postponed_total", "counter", says, postponed)


def _by_what(noted: Mapping[Note, int]) -> dict[str, Counter[str]]:
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for note, number in noted.items():
        found[note.what][note.word] += number
    return found


def _store(health: Health) -> Iterator[str]:
    labels = (("engine", health.engine), ("durable", health.durable))
    yield from metric("store", "gauge", "The store, 1.", [(labels, 1)])
    fenced = "1: the store takes no reports."
    yield from metric("store_fenced", "gauge", fenced, [((), int(health.fenced))])
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


def _dropped(noted: Mapping[Note, int]) -> Iterator[str]:
    """Yield how many epochs retention has dropped."""
    dropped = [((), noted.get(DROPPED, 0))]
    yield from metric("dropped_epochs_total", "counter", "Epochs that were dropped.", dropped)


def _locked(store: Store) -> Iterator[str]:
    """Yield whether releases are locked, or wait, where that can be read."""
    try:
        is_locked, pending = locked(store) is not None, len(waited_for(store))
    except StoreError:
        return
    waits = "1: central releases wait for `store unlock`."
    yield from metric("releases_locked", "gauge", waits, [((), int(is_locked))])
    says = "Journals that have not confirmed the store as it is: central releases wait for them."
    yield from metric("release_journals_pending", "gauge", says, [((), pending)])


def _reports(
    store: Store, series: Mapping[str, Series], counts: Mapping[str, Counts]
) -> Iterator[str]:
    """Yield what is said of reports, by collection: the sum over its series."""
    verdicts: Counter[Labels] = Counter()
    losses: Counter[Labels] = Counter()
    for fingerprint, each in series.items():
        if not counts_are_public(each.collection):
            continue
        reports = sum(store.sizes(each).values())
        found = counts.get(fingerprint, Counts())
        collection = ("collection", each.collection.name)
        for verdict, number in found.with_counted(reports).items():
            verdicts[collection, ("verdict", verdict)] += number
        for word, number in found.losses.items():
            reason, _, digits = word.partition(":")
            losses[collection, ("reason", reason), ("digits", digits)] += number
    for fingerprint, found in counts.items():  # one label, or anyone could make as many as he likes
        if fingerprint not in series:
            for verdict, number in found.verdicts.items():
                verdicts[("collection", UNKNOWN), ("verdict", verdict)] += number
    yield from metric("verdicts_total", "counter", "Reports by verdict.", verdicts.items())
    yield from metric("losses_total", "counter", "Devices that lost reports.", losses.items())


def _new_pseudonyms(
    store: Store, series: Mapping[str, Series], counts: Mapping[str, Counts]
) -> Iterator[str]:
    """Yield how many pseudonyms came, and how many were refused by which limit."""
    new: Counter[Labels] = Counter()
    full: Counter[Labels] = Counter()
    for fingerprint, each in series.items():
        if not counts_are_public(each.collection):
            continue
        collection = ("collection", each.collection.name)
        new[(collection,)] += sum(store.fresh(each).values())
        for limit, number in counts.get(fingerprint, Counts()).full().items():
            full[collection, ("limit", limit)] += number
    yield from metric("new_pseudonyms_total", "counter", "Pseudonyms that are new.", new.items())
    yield from metric("full_total", "counter", "Reports refused by a limit.", full.items())


def _memory(
    aggregator: Aggregator, store: Store, series: Mapping[str, Series], *, public: bool
) -> Iterator[str]:
    """Yield what counters take: of a collection, by its largest series, since each has a limit."""
    use, settings = store.memory(), aggregator.settings
    limits = MemoryLimits(settings.max_series_memory, settings.max_store_memory)
    taken: Counter[Labels] = Counter()
    for fingerprint, each in series.items():
        if counts_are_public(each.collection):
            label = (("collection", each.collection.name),)
            taken[label] = max(taken[label], use.series.get(fingerprint, 0))
    most = dict.fromkeys(taken, use.series_limit(limits))
    says, limit = "Bytes of a series' counters.", "Bytes beyond which reports are full."
    yield from metric("series_memory_bytes", "gauge", says, taken.items())
    yield from metric("series_memory_limit_bytes", "gauge", limit, most.items())
    total = use.store_limit(limits)
    if public and total is not None:
        yield from metric("store_memory_bytes", "gauge", "Bytes of all.", [((), use.total)])
        yield from metric("store_memory_limit_bytes", "gauge", limit, [((), total)])


def _suspicious(store: Store, series: Mapping[str, Series], suspicion: Suspicion) -> Iterator[str]:
    """Yield of each collection whether any of its series has counters of no honest crowd."""
    found: Counter[Labels] = Counter()
    for each in series.values():
        if tested(each):
            found[(("collection", each.collection.name),)] |= suspicion.of(store, each)
    says = "1: messages came that no honest crowd sends."
    yield from metric("suspicious", "gauge", says, found.items())


def _service(words: Words, *, intake: bool) -> Iterator[str]:
    """Yield what is counted of the service itself."""
    requests: Counter[Labels] = Counter()
    took: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for word, number in words.get(ANSWERED, {}).items():
        door, status, end = word.split(":")
        if intake or door != DOOR:
            requests[("door", door), ("status", status)] += number
            took[door][end] += number
    yield from metric("requests_total", "counter", "Answered requests.", requests.items())
    yield from _histogram(took, words.get(MICROSECONDS, {}))
    if intake:
        refused = [((("problem", word),), n) for word, n in words.get(REFUSED, {}).items()]
        groups = [((("up_to", word),), n) for word, n in words.get(GROUP, {}).items()]
        yield from metric("refused_total", "counter", "Batches refused whole.", refused)
        yield from metric("groups_total", "counter", "Commits, by their requests.", groups)


def _analysis_is_up(is_up: Callable[[], bool] | None) -> Iterator[str]:
    says = "1: what analysts ask of this server is answered."
    up = is_up is None or is_up()  # without a process of its own, by whoever answers this
    yield from metric("analysis_up", "gauge", says, [((), int(up))])


def _analysis_refused(words: Words) -> Iterator[str]:
    """Yield what became of the requests of analysts that were not computed."""
    says = "Requests of analysts answered with 503, by reason."
    found = [((("reason", word),), number) for word, number in words.get(UNANALYZED, {}).items()]
    yield from metric("analysis_refused_total", "counter", says, found)


def _histogram(took: Words, microseconds: Mapping[str, int]) -> Iterator[str]:
    """Yield how long requests took, by door: buckets that hold all below them too."""
    yield from head("request_seconds", "histogram", "Seconds from request to answer.")
    for door, held in sorted(took.items()):
        label = ("door", door)
        below = 0
        for end in WORDS:
            below += held.get(end, 0)
            yield line("request_seconds_bucket", (label, ("le", end)), below)
        yield line("request_seconds_sum", (label,), microseconds.get(door, 0) / 1e6)
        yield line("request_seconds_count", (label,), below)
