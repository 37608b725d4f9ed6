"""Token buckets that limit the requests of each key, in the memory of one worker.

A bucket remembers how full it was at the last request. The workers of a server divide its rate
among them; servers do not: what must hold over all of them is a quota in the store
[pseudonym_limit.py].
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import ceil

BURST_SECONDS = 2.0
MOST_BUCKETS = 100_000  # beyond it, those that are full are forgotten: they are as new ones


class RateLimits:
    """One token bucket for each key."""

    def __init__(
        self, rate: float, seconds: Callable[[], float], burst: float | None = None
    ) -> None:
        """Refill each bucket by `rate` tokens a second (0: no limit) up to `burst`."""
        self._rate = rate
        self._most = burst or max(1.0, rate * BURST_SECONDS)
        self._seconds = seconds
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait(self, key: str, cost: int = 1) -> int:
        """Take tokens and return 0, or return the seconds until there are so many."""
        if not self._rate:
            return 0
        with self._lock:
            now = self._seconds()
            tokens, looked = self._buckets.get(key, (self._most, now))
            tokens = min(self._most, tokens + (now - looked) * self._rate)
            is_admitted = tokens >= cost
            self._buckets[key] = (tokens - cost * is_admitted, now)
            if len(self._buckets) > MOST_BUCKETS:
                self._forget(now)
        return 0 if is_admitted else ceil((cost - tokens) / self._rate)

    def _forget(self, now: float) -> None:
        """Forget the buckets that are full by now, and the oldest ones beyond half of the most."""
        full_buckets = [
            (key, (tokens, looked))
            for key, (tokens, looked) in self._buckets.items()
            if tokens + (now - looked) * self._rate < self._most
        ]
        self._buckets = dict(full_buckets[-MOST_BUCKETS // 2 :])
