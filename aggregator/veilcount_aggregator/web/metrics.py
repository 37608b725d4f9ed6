"""The figures of the service as Prometheus reads them, summed over all workers by the store.

Behind a key, since they tell how many reports there are. Where a trusted curator's collection must
not tell that, its own figures are left out, and so are those of the intake as a whole, which would
tell it by subtraction.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from flask import Blueprint, Response

from ..aggregator import Aggregator
from ..commit import GROUP
from ..errors import StoreFenced
from ..keys import Role
from ..promises import counts_are_public
from ..store import Health, Note
from ..store.lock import locked
from .authority import Authority
from .computation_gate import ComputationGate
from .counts import Counts, counts_by_series
from .figures import ANSWERED, MICROSECONDS, REFUSED, UNANALYZED, WORDS
from .reports import DOOR
from .suspicion import Suspicion, tested

TYPE = "text/plain; version=0.0.4"
UNKNOWN = "(unknown)"  # no collection can be named so
PREFIX = "veilcount_"

Labels = tuple[tuple[str, str], ...]
Words = Mapping[str, Mapping[str, int]]


def doors(
    aggregator: Aggregator,
    authority: Authority,
    analysis_is_up: Callable[[], bool] | None = None,
) -> Blueprint:
    """Return the door."""
    blueprint = Blueprint("metrics", __name__)
    suspicion = Suspicion(aggregator.store)
    one_at_a_time = ComputationGate(places=1)  # a worker answers this, beside the intake

    @blueprint.get("/metrics")
    @authority.opens_to(Role.ANALYST)
    @one_at_a_time.bounded
    def show() -> Response:
        """All figures, as of now."""
        with suppress(StoreFenced):  # what is written can be read, and that it is fenced be told
            aggregator.flush()
        lines = [*exposition(aggregator, suspicion), *_analysis(aggregator, analysis_is_up)]
        return Response("".join(lines), content_type=TYPE)

    return blueprint


def exposition(aggregator: Aggregator, suspicion: Suspicion) -> Iterator[str]:
    """Yield the lines; the intake as a whole only where it tells nothing of a secret count."""
    noted = aggregator.store.noted()
    series = aggregator.known().catalogue.series
    secret = [each for each in series.values() if not counts_are_public(each.collection)]
    yield from _store(aggregator.store.health(), locked=locked(aggregator.store) is not None)
    yield from _reports(aggregator, counts_by_series(noted))
    yield from _suspicious(aggregator, suspicion)
    yield from _service(_by_what(noted), intake=not secret)


def _by_what(noted: Mapping[Note, int]) -> dict[str, Counter[str]]:
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for note, number in noted.items():
        found[note.what][note.word] += number
    return found


def _store(health: Health, *, locked: bool) -> Iterator[str]:
    labels = (("engine", health.engine), ("durable", health.durable))
    yield from _metric("store", "gauge", "The store, 1.", [(labels, 1)])
    fenced, waits = "1: the store takes no reports.", "1: central releases wait for `store unlock`."
    yield from _metric("store_fenced", "gauge", fenced, [((), int(health.fenced))])
    yield from _metric("releases_locked", "gauge", waits, [((), int(locked))])


def _reports(aggregator: Aggregator, counts: Mapping[str, Counts]) -> Iterator[str]:
    """Yield what is said of reports, by collection: the sum over its series."""
    verdicts: Counter[Labels] = Counter()
    losses: Counter[Labels] = Counter()
    series = aggregator.known().catalogue.series
    for fingerprint, each in series.items():
        if not counts_are_public(each.collection):
            continue
        reports = sum(aggregator.store.sizes(each).values())
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
    yield from _metric("verdicts_total", "counter", "Reports by verdict.", verdicts.items())
    yield from _metric("losses_total", "counter", "Devices that lost reports.", losses.items())


def _suspicious(aggregator: Aggregator, suspicion: Suspicion) -> Iterator[str]:
    """Yield of each collection whether any of its series has counters of no honest crowd."""
    found: Counter[Labels] = Counter()
    for each in aggregator.known().catalogue.series.values():
        if tested(each):
            found[(("collection", each.collection.name),)] |= suspicion.of(each)
    says = "1: messages came that no honest crowd sends."
    yield from _metric("suspicious", "gauge", says, found.items())


def _service(words: Words, *, intake: bool) -> Iterator[str]:
    """Yield what is counted of the service itself."""
    requests: Counter[Labels] = Counter()
    took: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for word, number in words.get(ANSWERED, {}).items():
        door, status, end = word.split(":")
        if intake or door != DOOR:
            requests[("door", door), ("status", status)] += number
            took[door][end] += number
    yield from _metric("requests_total", "counter", "Answered requests.", requests.items())
    yield from _histogram(took, words.get(MICROSECONDS, {}))
    if intake:
        refused = [((("problem", word),), n) for word, n in words.get(REFUSED, {}).items()]
        groups = [((("up_to", word),), n) for word, n in words.get(GROUP, {}).items()]
        yield from _metric("refused_total", "counter", "Batches refused whole.", refused)
        yield from _metric("groups_total", "counter", "Commits, by their requests.", groups)


def _analysis(aggregator: Aggregator, is_up: Callable[[], bool] | None) -> Iterator[str]:
    """Yield what became of the requests of analysts that were not computed, and whether any is."""
    words: Mapping[str, int] = _by_what(aggregator.store.noted()).get(UNANALYZED, {})
    says = "Requests of analysts answered with 503, by reason."
    found = [((("reason", word),), number) for word, number in words.items()]
    yield from _metric("analysis_refused_total", "counter", says, found)
    says = "1: what analysts ask of this server is answered."
    up = is_up is None or is_up()  # without a process of its own, by whoever answers this
    yield from _metric("analysis_up", "gauge", says, [((), int(up))])


def _histogram(took: Words, microseconds: Mapping[str, int]) -> Iterator[str]:
    """Yield how long requests took, by door: buckets that hold all below them too."""
    yield from _head("request_seconds", "histogram", "Seconds from request to answer.")
    for door, held in sorted(took.items()):
        label = ("door", door)
        below = 0
        for end in WORDS:
            below += held.get(end, 0)
            yield _line("request_seconds_bucket", (label, ("le", end)), below)
        yield _line("request_seconds_sum", (label,), microseconds.get(door, 0) / 1e6)
        yield _line("request_seconds_count", (label,), below)


def _metric(
    name: str, kind: str, says: str, values: Iterable[tuple[Labels, float]]
) -> Iterator[str]:
    yield from _head(name, kind, says)
    for labels, number in sorted(values):
        yield _line(name, labels, number)


def _head(name: str, kind: str, says: str) -> Iterator[str]:
    yield f"# HELP {PREFIX}{name} {says}\n# TYPE {PREFIX}{name} {kind}\n"


def _line(name: str, labels: Labels, number: float) -> str:
    # No label needs an escape: names of collections are letters, digits, - and _.
    told = ",".join(f'{label}="{value}"' for label, value in labels)
    return f"{PREFIX}{name}{{{told}}} {number}\n"
