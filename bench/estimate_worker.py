"""One size in a process of its own, so that its peak memory is its own: prints a line of JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

from veilcount_analysis import estimate
from veilcount_analysis.mechanisms import poisoning_test, share_handler
from veilcount_analysis.series.packed_rows import Counters
from veilcount_shared import Collection
from veilcount_shared.domain import Choice
from veilcount_shared.periods import Unit

ANSWERS = 1_000_000
PER_KILOBYTE = 1024


def main() -> None:
    """Decode, estimate and test a million answers about k values, cold once and warm after."""
    k, epsilon, repetitions = int(sys.argv[1]), Fraction(sys.argv[2]), int(sys.argv[3])
    collection = _collection(k, epsilon)
    mechanism = collection.mechanism
    handler = share_handler(collection)
    drawn = np.random.default_rng(1)
    counters = drawn.multinomial(ANSWERS, np.full(mechanism.counters, 1 / mechanism.counters))
    before = _peak()
    cold = _timed(lambda: handler.supports(counters))
    warm = median(_timed(lambda: handler.supports(counters)) for _ in range(repetitions))
    decoded = _peak()
    whole = median(_timed(lambda: estimate(collection, counters)) for _ in range(repetitions))
    few = _timed(lambda: estimate(collection, _sparse(counters), values=[0, k // 2]))
    tested = _timed(lambda: poisoning_test(collection, counters))
    print(
        json.dumps(
            {
                "mechanism": handler.describe(),
                "cold ms": 1e3 * cold,
                "decode ms": 1e3 * warm,
                "estimate ms": 1e3 * whole,
                "two values ms": 1e3 * few,
                "poisoning ms": 1e3 * tested,
                "start MB": before,
                "decode MB": decoded,
                "MB": _peak(),
            }
        )
    )


def _sparse(counters: Counters) -> Counters:
    """Return the counters of a first few thousand answers."""
    few = np.zeros_like(counters)
    few[:: max(1, len(counters) // 5000)] = 1
    return few


def _timed(call: Callable[[], object]) -> float:
    start = process_time()
    call()
    return process_time() - start


def _peak() -> float:
    """Return the most memory so far, in MB; the figure of getrusage begins with the parent's."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / PER_KILOBYTE


def _collection(k: int, epsilon: Fraction) -> Collection:
    return Collection(
        app="bench",
        name="bench",
        question="How long does it take?",
        domain=Choice(tuple(range(k))),
        epsilon=epsilon,
        unit=Unit.USER,
        start=date(2026, 1, 1),
        until=date(2026, 2, 1),
    )


if __name__ == "__main__":
    main()
