"""What an estimate costs the aggregator: milliseconds and memory, up to a million values."""

from __future__ import annotations

from fractions import Fraction
from statistics import median
from typing import Any

import numpy as np
from tests.processes import peak_megabytes

from veilcount_analysis import estimate
from veilcount_analysis.mechanisms import poisoning_test, share_handler

from . import separate
from .definitions import choice
from .stopwatch import cpu_us
from .table import Row, Table

SIZES = (1024, 4096, 16_384, 65_536, 262_144, 1_000_000)
EPSILONS = ("0.5", "1", "2", "4")
#: milliseconds of a warm decode and megabytes of the whole process, where they are promised
LIMITS = {65_536: (50, 300), 1_000_000: (500, 300)}
PROMISED = "1"
ANSWERS = 1_000_000

NOTES = (
    "A million answers, CPU time, each row a process of its own. cold: with the cycle's tables to",
    "  make; decode: the median of the warm ones; estimate: with intervals; two values: of a first",
    "  few thousand answers; poisoning: the test for fake reports. MB: peak memory of the process,",
    "  start MB: with numpy, scipy, the definition and the counters, decode MB: up to the decode.",
)


def run(*, quick: bool) -> Table:
    """Measure each size at each epsilon."""
    sizes = SIZES[::3] + SIZES[-1:] if quick else SIZES
    epsilons = EPSILONS[1:2] if quick else EPSILONS
    rows = [_row(k, epsilon, 3 if quick else 7) for epsilon in epsilons for k in sizes]
    return Table("estimate: what an estimate costs the aggregator", rows, NOTES)


def _row(k: int, epsilon: str, repetitions: int) -> Row:
    row = {"k": k, "eps": epsilon, **separate.run(measure, k, epsilon, repetitions)}
    if epsilon == PROMISED and k in LIMITS:
        most, megabytes = LIMITS[k]
        row["target"] = f"decode <= {most} ms, {megabytes} MB"
        row["met"] = row["decode ms"] <= most and row["MB"] <= megabytes
    return row


def measure(k: int, epsilon: str, repetitions: int) -> dict[str, Any]:
    """Decode, estimate and test a million answers about k values, cold once and warm after."""
    collection = choice(k, Fraction(epsilon))
    handler, size = share_handler(collection), collection.mechanism.counters
    counters = np.random.default_rng(1).multinomial(ANSWERS, np.full(size, 1 / size))
    few = np.zeros_like(counters)
    few[:: max(1, size // 5000)] = 1
    figures: dict[str, Any] = {"mechanism": handler.describe(), "start MB": peak_megabytes()}
    figures["cold ms"] = cpu_us(handler.supports, counters) / 1e3
    warm = [cpu_us(handler.supports, counters) / 1e3 for _ in range(repetitions)]
    figures |= {"decode ms": median(warm), "decode MB": peak_megabytes()}
    whole = [cpu_us(estimate, collection, counters) / 1e3 for _ in range(repetitions)]
    return figures | {
        "estimate ms": median(whole),
        "two values ms": cpu_us(estimate, collection, few, values=[0, k // 2]) / 1e3,
        "poisoning ms": cpu_us(poisoning_test, collection, counters) / 1e3,
        "MB": peak_megabytes(),
    }
