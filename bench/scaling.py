"""How each cost grows: with a body's reports, with devices, with k, with workers.

The exponent is the slope of a line through the logarithms of costs and sizes, with its interval:
0 means flat, 1 in proportion. A sum of a fixed cost and one in proportion is in between.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

from veilcount_aggregator.intake.decode import DecodedGroup, decode_body
from veilcount_aggregator.intake.pipeline import IntakeDays, IntakePipeline
from veilcount_aggregator.intake.pseudonym_limit import PseudonymLimit
from veilcount_aggregator.intake.service_counters import ServiceCounters
from veilcount_aggregator.intake.store_writer import StoreWriter
from veilcount_aggregator.store import open_store
from veilcount_analysis.series.series import Series
from veilcount_shared.wire import BINARY_TYPE

from .competitors import ROOT
from .ingest_inside import spending
from .ingest_load import BodyFile, Heard, Shape, bodies, definitions, load, question
from .ingest_servers import engine, served
from .scaling_fit import Power
from .table import Row, Table

COLUMNS = {"cost": "", "grows with": "", "from": ",d", "to": ",d", "first": ".4g", "last": ".4g"}
COLUMNS |= {"exponent": ".2f", "interval": "", "target": "", "met": ""}
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
NEW_PSEUDONYM_LIMIT = 1 << 40
BODIES = 12_000  # a second


def run(*, quick: bool) -> Table:
    """Measure each cost at each size, and fit."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            _row("us a body", "reports in it", REPORTS, _a_body(folder, 5 if quick else 31), 1),
            *_a_report(folder, DEVICES[: -2 if quick else None]),
            _row("ms a decode", "values", *_a_decode(VALUES[::2] if quick else VALUES), 1.3),
            *_workers(folder, 1 if quick else 4),
        ]
    return Table("growth: how each cost grows", COLUMNS, rows, NOTES)


# -- with a body's reports -------------------------------------------------------------------------


def _a_body(folder: Path, times: int) -> list[float]:
    """Return what a body of each size costs the intake, in microseconds."""
    collection, day = question(max(REPORTS)), datetime.now(UTC).date()
    known = {collection.fingerprint: Series(collection)}
    store = open_store(f"sqlite:///{folder}/bodies.db?durability=relaxed", make=True)
    service_counters = ServiceCounters(time.monotonic)
    intake = IntakePipeline(
        StoreWriter(store, service_counters, time.monotonic).commit,
        service_counters,
        PseudonymLimit(NEW_PSEUDONYM_LIMIT, lambda: b""),
    )

    def take(raw: bytes) -> None:
        group = DecodedGroup.from_body(decode_body(BINARY_TYPE, "", raw))
        intake.process([(None, group)], known, IntakeDays(day, day))

    costs = []
    for reports in REPORTS:
        raw = bodies(collection, Shape(reports), times + 1, np.random.default_rng())
        size = len(raw) // (times + 1)
        each = [raw[size * place : size * (place + 1)] for place in range(times + 1)]
        costs.append(median([_seconds(take, body) for body in each][1:]) * 1e6)
    store.close()
    return costs


def _seconds(call: Callable[[bytes], object], body: bytes) -> float:
    begun = process_time()
    call(body)
    return process_time() - begun


# -- with devices ----------------------------------------------------------------------------------


def _a_report(folder: Path, sizes: Sequence[int]) -> Iterator[Row]:
    """Tell what a report of somebody new costs, on top of so many."""
    store = open_store(f"sqlite:///{folder}/devices.db?durability=relaxed", make=True)
    costs, filled = [], 0
    groups = spending(2 * sizes[-1], 64)
    for size in sizes:
        before: list[float] = []
        while filled < size:
            group = next(groups)
            begun = process_time()
            store.commit([group], {})
            before.append((process_time() - begun) / len(group) * 1e6)
            filled += len(group)
        costs.append(median(before[-9:]))
    store.close()
    yield _row("us a report", "devices before it, SQLite", sizes, costs, 0.35)


# -- with k ----------------------------------------------------------------------------------------


def _a_decode(sizes: Sequence[int]) -> tuple[Sequence[int], list[float]]:
    """Return the sizes of the planes, and what decoding a million answers takes."""
    return sizes, [_decoded(k)["decode ms"] for k in sizes]


def _decoded(k: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.estimate_worker", str(k), "1", "5"]
    ran = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(ran.stdout)
    return found


# -- with workers ----------------------------------------------------------------------------------


def _workers(folder: Path, seconds: int) -> Iterator[Row]:
    file = folder / "collections.toml"
    file.write_text(definitions(128), encoding="utf-8")
    for kind, name in (("sqlite", "SQLite"), ("redis", "Redis")):
        heard = [_heard(folder, kind, file, workers, seconds) for workers in WORKERS]
        costs = [each.app + each.store for each in heard]
        yield _row(f"us a request, {name}", "workers", WORKERS, costs)
        rates = [each.requests / seconds for each in heard]
        yield _row(f"requests a second, {name}", "workers", WORKERS, rates)


def _heard(folder: Path, kind: str, file: Path, workers: int, seconds: int) -> Heard:
    with (
        engine(kind, folder / f"{kind}{workers}") as found,
        served("granian", found, file, workers) as server,
    ):
        chance = np.random.default_rng()
        number = BODIES * seconds
        body_file = BodyFile.write(folder / "bodies", question(128), Shape(1), number, chance)
        return load(server, body_file, seconds)


def _row(
    cost: str,
    of: str,
    sizes: Sequence[int],
    costs: Sequence[float],
    limit: float | None = None,
) -> Row:
    power = Power.fitted_to(sizes, costs)
    row: Row = {
        "cost": cost,
        "grows with": of,
        "from": sizes[0],
        "to": sizes[-1],
        "first": costs[0],
        "last": costs[-1],
        "exponent": power.exponent,
        "interval": f"{power.low:.2f} to {power.high:.2f}",
    }
    if limit is None:
        return row
    return {**row, "target": f"<= {limit:g}", "met": power.exponent <= limit}
