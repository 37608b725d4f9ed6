"""What an estimate costs the aggregator: milliseconds and memory, up to a million values."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from math import log
from typing import Any

from .competitors import ROOT
from .table import Row, Table

SIZES = (1024, 4096, 16_384, 65_536, 262_144, 1_000_000)
EPSILONS = ("0.5", "1", "2", "4")
#: milliseconds of a warm decode and megabytes of the whole process, where they are promised
LIMITS = {65_536: (50, 300), 1_000_000: (500, 300)}
PROMISED = "1"

COLUMNS = {
    "k": "d",
    "eps": "",
    "mechanism": "",
    "cold ms": ".1f",
    "decode ms": ".2f",
    "estimate ms": ".1f",
    "two values ms": ".1f",
    "poisoning ms": ".1f",
    "start MB": ".0f",
    "decode MB": ".0f",
    "MB": ".0f",
    "target": "",
    "met": "",
}
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
    rows = [_measure(k, epsilon, 3 if quick else 7) for epsilon in epsilons for k in sizes]
    return Table(
        "estimate: what an estimate costs the aggregator", COLUMNS, [*rows, *_growth(rows)], NOTES
    )


def _measure(k: int, epsilon: str, repetitions: int) -> Row:
    command = [sys.executable, "-m", "bench.estimate_worker", str(k), epsilon, str(repetitions)]
    ran = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    row = {"k": k, "eps": epsilon, **found}
    if epsilon == PROMISED and k in LIMITS:
        most, megabytes = LIMITS[k]
        row["target"] = f"decode <= {most} ms, {megabytes} MB"
        row["met"] = found["decode ms"] <= most and found["MB"] <= megabytes
    return row


def _growth(rows: list[Row]) -> Iterator[Row]:
    """Tell how the decode grows with k, between the least and the largest plane."""
    for epsilon in dict.fromkeys(row["eps"] for row in rows):
        planes = [row for row in rows if row["eps"] == epsilon and "plane" in str(row["mechanism"])]
        if len(planes) > 1:
            one, two = planes[0], planes[-1]
            yield {"eps": epsilon, "mechanism": f"grows as k^{_exponent(one, two):.2f}"}


def _exponent(one: Row, two: Row) -> float:
    times = float(two["decode ms"] or 0) / float(one["decode ms"] or 1)
    return log(times) / log(float(two["k"] or 0) / float(one["k"] or 1))
