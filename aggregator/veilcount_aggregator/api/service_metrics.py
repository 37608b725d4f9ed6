"""Metrics of the service itself, as its workers have counted them: requests, refusals, commits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from ..ingest.group_commit import COMMIT_MICROSECONDS, COMMITS, GROUP
from ..ingest.pipeline import POSTPONED
from .exposition import Labels, head, line, metric
from .reports import ENDPOINT
from .request_metrics import ANALYSIS_REFUSED, ANSWERED, BUCKET_LABELS, MICROSECONDS, REFUSED
from .shard_metrics import commit_metrics

#: service counters by what they count, and by the word that they are kept under
Words = Mapping[str, Mapping[str, int]]


def service_metrics(words: Words, *, intake: bool) -> Iterator[str]:
    """Yield what the service counted of itself, over all workers."""
    yield from _requests(words, intake=intake)
    yield from _analysis_refused(words)
    if intake:
        yield from commit_metrics(words.get(COMMITS, {}), words.get(COMMIT_MICROSECONDS, {}))
        postponed = [((), sum(words.get(POSTPONED, {}).values()))]
        says = "Reports that devices send again, since their shard was away."
        yield from metric("postponed_total", "counter", says, postponed)


def _requests(words: Words, *, intake: bool) -> Iterator[str]:
    """Yield what is counted of the service itself."""
    requests: Counter[Labels] = Counter()
    took: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for word, number in words.get(ANSWERED, {}).items():
        endpoint, status, end = word.split(":")
        if intake or endpoint != ENDPOINT:
            requests[("endpoint", endpoint), ("status", status)] += number
            took[endpoint][end] += number
    yield from metric("requests_total", "counter", "Answered requests.", requests.items())
    yield from _histogram(took, words.get(MICROSECONDS, {}))
    if intake:
        refused = [((("problem", word),), n) for word, n in words.get(REFUSED, {}).items()]
        groups = [((("up_to", word),), n) for word, n in words.get(GROUP, {}).items()]
        yield from metric("refused_total", "counter", "Batches refused whole.", refused)
        yield from metric("groups_total", "counter", "Commits, by their requests.", groups)


def _analysis_refused(words: Words) -> Iterator[str]:
    """Yield what became of the requests of analysts that were not computed."""
    says = "Requests of analysts answered with 503, by reason."
    found = [
        ((("reason", word),), number) for word, number in words.get(ANALYSIS_REFUSED, {}).items()
    ]
    yield from metric("analysis_refused_total", "counter", says, found)


def _histogram(took: Words, microseconds: Mapping[str, int]) -> Iterator[str]:
    """Yield how long requests took, by endpoint: buckets that hold all below them too."""
    yield from head("request_seconds", "histogram", "Seconds from request to answer.")
    for endpoint, held in sorted(took.items()):
        label = ("endpoint", endpoint)
        below = 0
        for end in BUCKET_LABELS:
            below += held.get(end, 0)
            yield line("request_seconds_bucket", (label, ("le", end)), below)
        yield line("request_seconds_sum", (label,), microseconds.get(endpoint, 0) / 1e6)
        yield line("request_seconds_count", (label,), below)
