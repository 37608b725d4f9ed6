"""How each cost grows: with a body's reports, with devices, with k, with workers.

The exponent is the slope of a line through the logarithms of costs and sizes, with its interval:
0 means flat, 1 in proportion. A sum of a fixed cost and one in proportion is in between.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import numpy as np
from scipy.stats import t as student
from tests.engines import REDIS, SQLITE, engine

from veilcount_aggregator.intake.decode import DecodedGroup, decode_body
from veilcount_aggregator.intake.pipeline import IntakeDays, IntakePipeline
from veilcount_aggregator.intake.pseudonym_limit import PseudonymLimit
from veilcount_aggregator.intake.store_writer import StoreWriter
from veilcount_aggregator.records.service_counters import ServiceCounters
from veilcount_aggregator.store import open_store
from veilcount_shared.wire import BINARY_TYPE

from . import estimate, separate
from .definitions import definitions, question
from .load import Costs, Shape, bodies, load, served
from .memory import spending
from .stopwatch import cpu_us
from .table import Row, Table, target

NOTES = (
    "first, last: the cost at the least and the largest size. CPU time, but requests a second.",
    "A body: read, judged and counted in SQLite without waiting for the disk. Devices: rows that",
    "  are there already, and what a report of somebody new costs then, in groups of 2,000. A",
    "  decode: of a plane, warm. Workers share the cores with the generator and the store.",
)
REPORTS = (1, 4, 16, 64, 256, 1000)
DEVICES = (10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6)
VALUES = (1024, 4096, 16_384, 65_536, 262_144, 1_000_000)
WORKERS = (1, 2, 4)
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Power:
    """A cost grows as size^exponent; the interval is of the fit, and needs three sizes."""

    exponent: float
    low: float
    high: float

    @classmethod
    def fitted_to(cls, sizes: Sequence[float], costs: Sequence[float]) -> Power:
        """Fit a line through the logarithms, by least squares; its slope is the exponent."""
        x, y = np.log(sizes), np.log(costs)
        x = x - x.mean()
        slope = float(x @ y / (x @ x))
        residuals = y - y.mean() - slope * x
        free = len(x) - 2
        if free < 1:
            return cls(slope, -np.inf, np.inf)
        error = float(np.sqrt(residuals @ residuals / free / (x @ x)))
        half = float(student.ppf((1 + LEVEL) / 2, free)) * error
        return cls(slope, slope - half, slope + half)

    def __str__(self) -> str:
        """As it stands in a table."""
        return f"{self.exponent:.2f} ({self.low:.2f} to {self.high:.2f})"


def run(*, quick: bool) -> Table:
    """Measure each cost at each size, and fit."""
    devices, values = DEVICES[: -2 if quick else None], VALUES[:: 2 if quick else 1]
    decodes = [separate.run(estimate.measure, k, "1", 5)["decode ms"] for k in values]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            _row("us a body", "reports in it", REPORTS, _bodies(folder, 5 if quick else 31), 1),
            _row(
                "us a report", "devices before it, SQLite", devices, _devices(folder, devices), 0.35
            ),
            _row("ms a decode", "values", values, decodes, 1.3),
            *_workers(folder, 1 if quick else 4),
        ]
    return Table("growth: how each cost grows", rows, NOTES)


def _bodies(folder: Path, times: int) -> list[float]:
    """Return what a body of each size costs the intake, in microseconds."""
    series, day = question(max(REPORTS)), datetime.now(UTC).date()
    counters = ServiceCounters(time.monotonic)
    with closing(
        open_store(f"sqlite:///{folder}/bodies.db?durability=relaxed", make=True)
    ) as store:
        intake = IntakePipeline(
            StoreWriter(store, counters, time.monotonic).commit,
            counters,
            PseudonymLimit(1 << 40, lambda: b""),
        )

        def take(raw: bytes) -> None:
            group = DecodedGroup.from_body(decode_body(BINARY_TYPE, "", raw))
            intake.process([(None, group)], {series.fingerprint: series}, IntakeDays(day, day))

        chance = np.random.default_rng()
        rounds = (bodies(series, Shape(reports), times + 1, chance) for reports in REPORTS)
        return [median([cpu_us(take, body) for body in raw][1:]) for raw in rounds]


def _devices(folder: Path, sizes: Sequence[int]) -> list[float]:
    """Return what a report of somebody new costs, on top of so many."""
    costs, filled = [], 0
    groups = spending(2 * sizes[-1], 64)
    url = f"sqlite:///{folder}/devices.db?durability=relaxed"
    with closing(open_store(url, make=True)) as store:
        for size in sizes:
            before: list[float] = []
            while filled < size:
                group = next(groups)
                before.append(cpu_us(store.commit, [group], {}) / len(group))
                filled += len(group)
            costs.append(median(before[-9:]))
    return costs


def _workers(folder: Path, seconds: int) -> Iterator[Row]:
    file = folder / "collections.toml"
    file.write_text(definitions(128), encoding="utf-8")
    for kind, name in ((SQLITE, "SQLite"), (REDIS, "Redis")):
        loads = [_loaded(folder, kind, file, workers, seconds) for workers in WORKERS]
        costs = [cost.app + cost.store for cost in loads]
        yield _row(f"us a request, {name}", "workers", WORKERS, costs)
        rates = [cost.requests / seconds for cost in loads]
        yield _row(f"requests a second, {name}", "workers", WORKERS, rates)


def _loaded(folder: Path, kind: str, file: Path, workers: int, seconds: int) -> Costs:
    with (
        engine(kind, folder / f"{kind}{workers}") as store,
        served(store, file, workers) as server,
    ):
        return load(server, question(128), Shape(1), 12_000, seconds)


def _row(
    cost: str, of: str, sizes: Sequence[int], costs: Sequence[float], limit: float | None = None
) -> Row:
    power = Power.fitted_to(sizes, costs)
    return {
        "cost": cost,
        "grows with": of,
        "from": sizes[0],
        "to": sizes[-1],
        "first": costs[0],
        "last": costs[-1],
        "exponent": power.exponent,
        "interval": f"{power.low:.2f} to {power.high:.2f}",
        **target(power.exponent, limit),
    }
