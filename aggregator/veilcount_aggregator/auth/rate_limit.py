"""How many requests a key may send: a bucket of tokens, in the memory of one worker.

No store is asked, and no time of a request is kept: a bucket knows how full it was when it was last
looked at. The workers of a server share its rate by each taking its part; several servers do not:
what must hold over all of them is a quota in the store [pseudonym_limit.py].
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import ceil

BURST_SECONDS = 2.0


class RateLimits:
    """One bucket a key."""

    def __init__(self, rate: float, seconds: Callable[[], float]) -> None:
        """Fill each with so many tokens a second; 0: there is no limit."""
        self._rate = rate
        self._most = max(1.0, rate * BURST_SECONDS)
        self._seconds = seconds
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait(self, key: str) -> int:
        """Take a token; return 0, or in how many seconds there is one."""
        if not self._rate:
            return 0
        with self._lock:
            now = self._seconds()
            tokens, looked = self._buckets.get(key, (self._most, now))
            tokens = min(self._most, tokens + (now - looked) * self._rate)
            taken = tokens >= 1.0
            self._buckets[key] = (tokens - taken, now)
        return 0 if taken else ceil((1.0 - tokens) / self._rate)
