"""Latency of requests, rejected bodies, and requests per commit.

Summed over all workers since the store was created. A histogram has the ends of its buckets only:
a quantile is an upper bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from ...api.problems import PROBLEM_KINDS
from ...api.reports import ENDPOINT
from ...api.request_metrics import ANSWERED, BUCKET_BOUNDS, BUCKET_LABELS, MICROSECONDS, REFUSED
from ...ingest.group_commit import GROUP, SIZES
from ...store import ServiceCounter
from .. import charts

SHARES = (0.5, 0.95, 0.99)

Counts = Mapping[ServiceCounter, int]


@dataclass(frozen=True, slots=True)
class EndpointLatency:
    """The latency of one endpoint."""

    endpoint: str
    requests: int
    failed: int  # answered with 5xx
    mean: str
    within: tuple[str, ...]  # for each share


def latencies(counts: Counts, *, intake: bool) -> list[EndpointLatency]:
    """Return the latency of each endpoint; the intake's only where its counts are public."""
    held: dict[str, Counter[str]] = {}
    failed: Counter[str] = Counter()
    microseconds: Counter[str] = Counter()
    for note, number in counts.items():
        if note.what == ANSWERED:
            endpoint, status, end = note.word.split(":")
            held.setdefault(endpoint, Counter())[end] += number
            failed[endpoint] += number * (status == "5xx")
        elif note.what == MICROSECONDS:
            microseconds[note.word] += number
    return [
        _latency(endpoint, ends, failed[endpoint], microseconds[endpoint])
        for endpoint, ends in sorted(held.items())
        if intake or endpoint != ENDPOINT
    ]


def _latency(endpoint: str, ends: Counter[str], failed: int, microseconds: int) -> EndpointLatency:
    requests = ends.total()
    mean = f"{microseconds / requests / 1000:,.1f} ms"
    return EndpointLatency(
        endpoint, requests, failed, mean, tuple(_within(ends, share) for share in SHARES)
    )


def _within(ends: Counter[str], share: float) -> str:
    """Return the end of the first bucket at which so large a share is reached."""
    below = accumulate(ends[word] for word in BUCKET_LABELS)
    place = next(n for n, number in enumerate(below) if number >= share * ends.total())
    return (
        f"{BUCKET_BOUNDS[place] * 1000:g} ms"
        if place < len(BUCKET_BOUNDS)
        else f"over {BUCKET_BOUNDS[-1]:g} s"
    )


def rejected_bodies(counts: Counts) -> list[tuple[str, int]]:
    """Return how many bodies were rejected as a whole, by problem, the most frequent first."""
    found: Counter[str] = Counter()
    for note, number in counts.items():
        if note.what == REFUSED:
            found[note.word] += number
    return [(PROBLEM_KINDS[word].title, number) for word, number in found.most_common()]


def commit_chart(counts: Counts) -> charts.Chart | None:
    """Draw commits by the number of requests they hold; None: nothing was committed yet."""
    found: Counter[str] = Counter()
    for note, number in counts.items():
        if note.what == GROUP:
            found[note.word] += number
    sizes = list(map(str, SIZES))
    last = max((n for n, size in enumerate(sizes) if found[size]), default=-1)
    groups = [(_bucket(place), found[size]) for place, size in enumerate(sizes[: last + 1])]
    if not groups:
        return None
    hover = [f"{number:,} commits of {size} requests" for size, number in groups]
    part = charts.counts([number for _, number in groups], hover)
    x = charts.axis("requests in one commit", type="category")
    drawing = charts.columns([size for size, _ in groups], [part], x, charts.axis("commits"))
    return charts.Chart(
        "commits",
        drawing | {"height": 240},
        "Durable commits by how many requests shared one: the slower the store, the more",
        ("Requests in one commit", "Commits"),
        [(size, f"{number:,}") for size, number in groups],
    )


def _bucket(place: int) -> str:
    least = SIZES[place - 1] + 1 if place else 1
    return str(SIZES[place]) if least == SIZES[place] else f"{least} to {SIZES[place]}"
