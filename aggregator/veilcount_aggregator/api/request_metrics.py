"""Service counters of requests: by endpoint and status, their duration, refused bodies.

Notes of a closed list of words, which go to the store with the next group: so they are right over
all workers, and a recycled one takes nothing with it.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache

from ..ingest.service_counters import ServiceCounters
from ..store import ServiceCounter

ANSWERED = "answered"
MICROSECONDS = "microseconds"
REFUSED = "refused"
ANALYSIS_REFUSED = "unanalyzed"
COMPUTING = "computing"  # a reason beside those of `analysis_server.forwarding`

#: upper ends of the histogram's buckets, in seconds; beyond the last: +Inf
BUCKET_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
BUCKET_LABELS = (*map(str, BUCKET_BOUNDS), "+Inf")


@cache  # of a closed list: doors, classes of status, buckets, kinds of problems
def _note(what: str, *words: str) -> ServiceCounter:
    return ServiceCounter(what, "", -1, ":".join(words))


_CLASSES = ("", "1xx", "2xx", "3xx", "4xx", "5xx")


class RequestMetrics:
    """Counts into a notebook."""

    def __init__(self, service_counters: ServiceCounters) -> None:
        """Count into this one."""
        self._notebook = service_counters

    def answered(self, door: str, status: int, seconds: float) -> None:
        """Count a request by its door, the class of its status and how long it took."""
        took = BUCKET_LABELS[bisect_left(BUCKET_BOUNDS, seconds)]
        self._notebook.count(_note(ANSWERED, door, _CLASSES[status // 100], took))
        self._notebook.count(_note(MICROSECONDS, door), round(seconds * 1e6))

    def refused(self, problem: str) -> None:
        """Count a body that was refused, by its kind of problem."""
        self._notebook.count(_note(REFUSED, problem))

    def unanalyzed(self, reason: str) -> None:
        """Count a request of an analyst that was turned away with 503, by the reason."""
        self._notebook.count(_note(ANALYSIS_REFUSED, reason))
