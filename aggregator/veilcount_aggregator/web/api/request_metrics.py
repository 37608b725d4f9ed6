"""Service counters: requests by endpoint and status, their duration, refused bodies, workers.

Notes of a closed list of words, which go to the store with the next group: so they are right over
all workers, and a recycled one takes nothing with it.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache

from ...records.service_counters import ANSWERED, REFUSED, ServiceCounters
from ...store import ServiceCounter

MICROSECONDS = "microseconds"
RELAYED = "relayed"
GATEWAY_REFUSED = "unopened"
REPLACED = "worker replaced"
ANALYSIS_REFUSED = "unanalyzed"
COMPUTING = "computing"  # a reason in addition to those of `analysis_pool.client`

#: upper ends of the histogram's buckets, in seconds; beyond the last: +Inf
BUCKET_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
BUCKET_LABELS = (*map(str, BUCKET_BOUNDS), "+Inf")


@cache  # a closed set: endpoints, status classes, buckets, problem types
def _counter(what: str, *words: str) -> ServiceCounter:
    return ServiceCounter(what, "", -1, ":".join(words))


_CLASSES = ("", "1xx", "2xx", "3xx", "4xx", "5xx")


class RequestMetrics:
    """Counts requests and refusals."""

    def __init__(self, service_counters: ServiceCounters) -> None:
        self._counters = service_counters

    def answered(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a request by its endpoint, its status class and its duration."""
        took = BUCKET_LABELS[bisect_left(BUCKET_BOUNDS, seconds)]
        self._counters.count(_counter(ANSWERED, endpoint, _CLASSES[status // 100], took))
        self._counters.count(_counter(MICROSECONDS, endpoint), round(seconds * 1e6))

    def relayed(self) -> None:
        """Count a request with reports that was answered with 2xx and came through a relay."""
        self._counters.count(_counter(RELAYED))

    def gateway_refused(self, reason: str) -> None:
        """Count an encapsulated request that was not handed on, by the reason."""
        self._counters.count(_counter(GATEWAY_REFUSED, reason))

    def replaced(self) -> None:
        """Count this worker, which was started in the place of one that died."""
        self._counters.count(_counter(REPLACED))

    def refused(self, problem: str) -> None:
        """Count a refused body, by its problem type."""
        self._counters.count(_counter(REFUSED, problem))

    def unanalyzed(self, reason: str) -> None:
        """Count an analyst's request that was refused with 503, by the reason."""
        self._counters.count(_counter(ANALYSIS_REFUSED, reason))
