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


class RateLimits:
    """One token bucket for each key."""

    def __init__(self, rate: float, seconds: Callable[[], float]) -> None:
        """Refill each bucket by `rate` tokens a second; 0: no limit."""
        self._rate = rate
        self._most = max(1.0, rate * BURST_SECONDS)
        self._seconds = seconds
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait(self, key: str) -> int:
        """Take a token and return 0, or return the seconds until there is one."""
        if not self._rate:
            return 0
        with self._lock:
            now = self._seconds()
            tokens, looked = self._buckets.get(key, (self._most, now))
            tokens = min(self._most, tokens + (now - looked) * self._rate)
            taken = tokens >= 1.0
            self._buckets[key] = (tokens - taken, now)
        return 0 if taken else ceil((1.0 - tokens) / self._rate)
