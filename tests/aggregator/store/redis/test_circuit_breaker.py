"""The circuit breaker by itself: when it opens, who may probe, how many may wait."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from veilcount_aggregator.errors import StoreUnavailable
from veilcount_aggregator.store.redis.circuit_breaker import (
    LONGEST_PAUSE,
    MOST_STALLED,
    PAUSE_SECONDS,
    STALL_SECONDS,
    BreakerState,
    CircuitBreaker,
)


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker("server:1", clock)


def test_after_a_time_out_calls_fail_at_once(breaker: CircuitBreaker) -> None:
    breaker.failed("no answer within 2 s")

    with pytest.raises(StoreUnavailable, match="server:1 does not answer: no answer within 2 s"):
        breaker.check()
    with pytest.raises(StoreUnavailable), breaker.call():
        pass
    assert breaker.state is BreakerState.OPEN


def test_one_caller_at_a_time_probes_after_a_pause(breaker: CircuitBreaker, clock: Clock) -> None:
    for _ in range(10):  # calls that were under way together do not make the pause longer
        breaker.failed("")
    too_early = breaker.begin_probe()
    clock.now += PAUSE_SECONDS
    breaker.check()  # a probe is due: whoever comes is let through, to make it
    first, second = breaker.begin_probe(), breaker.begin_probe()

    assert (too_early, first, second) == (False, True, False)
    with pytest.raises(StoreUnavailable):
        breaker.check()
    breaker.succeeded()
    with breaker.call():
        assert breaker.state is BreakerState.CLOSED


def test_the_pause_doubles_with_each_failed_probe_up_to_a_limit(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    breaker.failed("")
    pauses = []
    for _ in range(6):
        pause = 0.0
        while not breaker.begin_probe():
            clock.now += 0.25
            pause += 0.25
        pauses.append(pause)
        breaker.failed("")

    assert pauses == [0.5, 1.0, 2.0, 4.0, LONGEST_PAUSE, LONGEST_PAUSE]


def test_few_calls_wait_for_a_server_that_stands_still(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    """Any number while it answers soon, as a slow disk does; a few once one has waited long."""
    with ExitStack() as waiting:
        for _ in range(3 * MOST_STALLED):
            waiting.enter_context(breaker.call())
        clock.now += STALL_SECONDS + 0.1

        with pytest.raises(StoreUnavailable, match="24 calls wait"):
            breaker.check()
        with pytest.raises(StoreUnavailable), breaker.call():
            pass
    with breaker.call():
        assert breaker.state is BreakerState.CLOSED
