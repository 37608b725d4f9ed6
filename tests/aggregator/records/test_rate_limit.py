"""Token buckets: a rate, a burst, a cost, and a memory that has an end."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from veilcount_serving import rate_limit
from veilcount_serving.rate_limit import RateLimits


@dataclass
class Watch:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_refills_at_its_rate_up_to_its_burst() -> None:
    watch = Watch()
    limits = RateLimits(2, watch, burst=10)
    assert [limits.wait("a", 4) for _ in range(3)] == [0, 0, 1]
    assert limits.wait("a", 8) == 3
    assert limits.wait("b", 10) == 0
    watch.now = 3

    assert limits.wait("a", 8) == 0
    watch.now = 1000
    assert [limits.wait("a", 10), limits.wait("a")] == [0, 1]


def test_no_rate_is_no_limit() -> None:
    assert [RateLimits(0, Watch()).wait("a", 1000) for _ in range(3)] == [0, 0, 0]


def test_memory_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever used theirs up last is remembered; who waited long enough is as new."""
    monkeypatch.setattr(rate_limit, "MOST_BUCKETS", 10)
    watch = Watch()
    limits = RateLimits(1, watch, burst=2)
    for number in range(1000):
        watch.now += 0.01
        limits.wait(str(number), 2)
        assert len(limits._buckets) <= 10

    assert limits.wait("999", 1) == 1
    watch.now += 2
    for number in range(10):
        limits.wait(f"later {number}")
    assert len(limits._buckets) <= 10
