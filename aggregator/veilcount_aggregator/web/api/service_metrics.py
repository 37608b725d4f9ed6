"""Metrics of the service: its requests, refusals and commits, as its workers have counted them, and
the availability, memory and append-only file of each shard's server.

Shards are named by their numbers, and the part that keeps definitions and keys `records`; no label
is an address. What a server says of its memory stands at each shard that it has.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from ...intake.group_intake import GROUP
from ...intake.pipeline import POSTPONED
from ...intake.store_writer import COMMIT_MICROSECONDS, COMMITS
from ...records.service_counters import ANSWERED, REFUSED, REPORTS
from ...store import LOG_RESTORED, ShardHealth
from .exposition import Labels, gauge, head, line, metric
from .request_metrics import (
    ANALYSIS_REFUSED,
    BUCKET_LABELS,
    GATEWAY_REFUSED,
    MICROSECONDS,
    RELAYED,
    REPLACED,
)

#: gauges by name: what each says, and the shard's figure
GAUGES: Mapping[str, tuple[str, Callable[[ShardHealth], int | None]]] = {
    "shard_up": ("1: the shard takes reports.", lambda shard: int(shard.up)),
    "shard_memory_bytes": ("Memory that the shard's server uses.", lambda s: s.memory_bytes),
    "shard_memory_limit_bytes": (
        "Memory that the shard's server may use; 0: any amount.",
        lambda shard: shard.memory_limit_bytes,
    ),
    "shard_aof_failing": (
        "1: the server's last write or rewrite of its append-only file failed.",
        lambda shard: _as_number(shard.aof_failing),
    ),
    "shard_aof_rewriting": (
        "1: the server rewrites its append-only file.",
        lambda shard: _as_number(shard.aof_rewriting),
    ),
    "shard_went_back": (
        "1: the shard lacks commits that this host has acknowledged, and is not written.",
        lambda shard: _as_number(shard.went_back),
    ),
    "shard_aof_delayed_fsyncs": (
        "Fsyncs that the server put off, since it started.",
        lambda shard: shard.aof_delayed_fsyncs,
    ),
}


def shard_metrics(shards: Sequence[ShardHealth]) -> Iterator[str]:
    """Yield how each shard is, as the worker that answers sees it."""
    for name, (says, figure) in GAUGES.items():
        rows = [(_label(shard.name), figure(shard)) for shard in shards]
        known = [(labels, number) for labels, number in rows if number is not None]
        yield from metric(name, "gauge", says, known)
    states = [((*_label(shard.name), ("state", shard.breaker)), 1) for shard in shards]
    says = "The circuit breaker of the shard's server in the worker that answers, 1."
    yield from metric("shard_breaker", "gauge", says, states)


def queue_metrics(waiting: int) -> Iterator[str]:
    """Yield how many requests wait for the store."""
    says = "Requests that wait for the store in the worker that answers."
    yield from gauge("waiting_requests", says, waiting)


def _commits(words: Words) -> Iterator[str]:
    """Yield how many commits there were, and how long they took, over all workers."""
    number, microseconds = (
        sum(words.get(counter.what, {}).values()) for counter in (COMMITS, COMMIT_MICROSECONDS)
    )
    yield from metric("commits_total", "counter", "Commits of groups.", [((), number)])
    says = "Seconds from a commit to its acknowledgement, added up."
    yield from metric("commit_seconds_total", "counter", says, [((), microseconds / 1e6)])


def _label(shard: str) -> Labels:
    return (("shard", shard),)


def _as_number(figure: float | None) -> int | None:
    return None if figure is None else int(figure)


#: service counters by what they count, and by the word that they are kept under
Words = Mapping[str, Mapping[str, int]]


def service_metrics(words: Words, *, intake: bool) -> Iterator[str]:
    """Yield what the service counted of itself, over all workers."""
    yield from _requests(words, intake=intake)
    yield from _analysis_refused(words)
    yield from _repairs(words)
    if intake:
        yield from _commits(words)
        relayed = [((), sum(words.get(RELAYED, {}).values()))]
        says = "Accepted requests with reports that came through a relay."
        yield from metric("relayed_total", "counter", says, relayed)
        unopened = [((("reason", word),), n) for word, n in words.get(GATEWAY_REFUSED, {}).items()]
        says = "Encapsulated requests that were not handed on, by reason."
        yield from metric("gateway_refused_total", "counter", says, unopened)
        postponed = [((), sum(words.get(POSTPONED, {}).values()))]
        says = "Reports that devices send again, since their shard was away."
        yield from metric("postponed_total", "counter", says, postponed)


def _requests(words: Words, *, intake: bool) -> Iterator[str]:
    requests: Counter[Labels] = Counter()
    took: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for word, number in words.get(ANSWERED, {}).items():
        endpoint, status, end = word.split(":")
        if intake or endpoint != REPORTS:
            requests[("endpoint", endpoint), ("status", status)] += number
            took[endpoint][end] += number
    yield from metric("requests_total", "counter", "Answered requests.", requests.items())
    yield from _histogram(took, words.get(MICROSECONDS, {}))
    if intake:
        refused = [((("problem", word),), n) for word, n in words.get(REFUSED, {}).items()]
        groups = [((("up_to", word),), n) for word, n in words.get(GROUP, {}).items()]
        yield from metric("refused_total", "counter", "Batches refused whole.", refused)
        yield from metric("groups_total", "counter", "Groups of requests, by their size.", groups)


def _repairs(words: Words) -> Iterator[str]:
    """Yield how often something of ours was put back that somebody, or the kernel, took away."""
    for name, what, says in (
        ("workers_replaced_total", REPLACED, "Workers that died and were replaced."),
        ("log_restored_total", LOG_RESTORED, "Removals of a SQLite store's log, put back."),
    ):
        yield from metric(name, "counter", says, [((), sum(words.get(what, {}).values()))])


def _analysis_refused(words: Words) -> Iterator[str]:
    """Yield what became of the requests of analysts that were not computed."""
    says = "Requests of analysts answered with 503, by reason."
    refusals = [
        ((("reason", word),), number) for word, number in words.get(ANALYSIS_REFUSED, {}).items()
    ]
    yield from metric("analysis_refused_total", "counter", says, refusals)


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
