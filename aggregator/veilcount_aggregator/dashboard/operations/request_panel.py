"""The service's own figures: how long requests took, and how many shared a commit.

Summed by the store over all workers, since it was made. A histogram knows the ends of its buckets,
so that a time is said as "within".
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

Noted = Mapping[ServiceCounter, int]


@dataclass(frozen=True, slots=True)
class Took:
    """How long the requests of one door took."""

    door: str
    requests: int
    failed: int  # answered with 5xx
    mean: str
    within: tuple[str, ...]  # for each share


@dataclass(frozen=True, slots=True)
class Refused:
    """Bodies that were refused whole, by the kind of problem."""

    why: str
    times: int


def took(noted: Noted, *, intake: bool) -> list[Took]:
    """Return how long requests took, by door; the intake's only where it may be told."""
    held: dict[str, Counter[str]] = {}
    failed: Counter[str] = Counter()
    microseconds: Counter[str] = Counter()
    for note, number in noted.items():
        if note.what == ANSWERED:
            door, status, end = note.word.split(":")
            held.setdefault(door, Counter())[end] += number
            failed[door] += number * (status == "5xx")
        elif note.what == MICROSECONDS:
            microseconds[note.word] += number
    return [
        _took(door, ends, failed[door], microseconds[door])
        for door, ends in sorted(held.items())
        if intake or door != ENDPOINT
    ]


def _took(door: str, ends: Counter[str], failed: int, microseconds: int) -> Took:
    requests = ends.total()
    mean = f"{microseconds / requests / 1000:,.1f} ms"
    return Took(door, requests, failed, mean, tuple(_within(ends, share) for share in SHARES))


def _within(ends: Counter[str], share: float) -> str:
    """Return the end of the first bucket at which so large a share is reached."""
    below = accumulate(ends[word] for word in BUCKET_LABELS)
    place = next(n for n, number in enumerate(below) if number >= share * ends.total())
    return (
        f"{BUCKET_BOUNDS[place] * 1000:g} ms"
        if place < len(BUCKET_BOUNDS)
        else f"over {BUCKET_BOUNDS[-1]:g} s"
    )


def refused(noted: Noted) -> list[Refused]:
    """Return how many bodies were refused whole, the most frequent first."""
    found: Counter[str] = Counter()
    for note, number in noted.items():
        if note.what == REFUSED:
            found[note.word] += number
    return [Refused(PROBLEM_KINDS[word].title, number) for word, number in found.most_common()]


def groups(noted: Noted) -> list[tuple[str, int]]:
    """Return how many commits held so many requests, by the ends of the buckets."""
    found: Counter[str] = Counter()
    for note, number in noted.items():
        if note.what == GROUP:
            found[note.word] += number
    sizes = list(map(str, SIZES))
    last = max((n for n, size in enumerate(sizes) if found[size]), default=-1)
    return [(_up_to(place), found[size]) for place, size in enumerate(sizes[: last + 1])]


def _up_to(place: int) -> str:
    least = SIZES[place - 1] + 1 if place else 1
    return str(SIZES[place]) if least == SIZES[place] else f"{least} to {SIZES[place]}"


def drawn(rows: list[tuple[str, int]]) -> charts.Drawn:
    """Return the commits by their requests, as columns."""
    told = [f"{number:,} commits of {size} requests" for size, number in rows]
    part = charts.counts([number for _, number in rows], told)
    sizes = charts.axis("requests in one commit", type="category")
    labels = [size for size, _ in rows]
    return charts.columns(labels, [part], sizes, charts.axis("commits")) | {"height": 240}
