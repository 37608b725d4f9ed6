"""Counters of the service (verdicts, losses, requests) in one worker, until the next commit.

Kept in memory for a second at most while reports come in; a worker that is killed loses that
second's figures of the service, and no answer.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from ..store import ServiceCounter, ServiceCounts

SECONDS = 1.0

#: what counters of requests are called, and the endpoint of reports in them
ANSWERED = "answered"
REFUSED = "refused"
REPORTS = "reports"


class ServiceCounters:
    """Counters that are taken out about once a second. Thread-safe."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        """Begin empty; `seconds` is a clock that never goes back."""
        self._seconds = seconds
        self._taken = seconds()
        self._lock = threading.Lock()
        self._counts: Counter[ServiceCounter] = Counter()

    def count(self, counter: ServiceCounter, number: int = 1) -> None:
        """Add to a counter."""
        with self._lock:
            self._counts[counter] += number

    def take(self, *, now: bool = False) -> ServiceCounts:
        """Return what was counted since, once a second has passed (or now); else nothing."""
        with self._lock:
            if not self._counts or not (now or self._seconds() - self._taken >= SECONDS):
                return {}
            self._taken = self._seconds()
            counts, self._counts = self._counts, Counter()
            return counts

    def restore(self, counts: ServiceCounts) -> None:
        """Count again what could not be written."""
        with self._lock:
            self._counts.update(counts)
