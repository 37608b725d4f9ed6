"""What more shards than masters cost: one cluster of three masters, stores of several numbers.

Groups of 32 requests are committed, in turn on each store; CPU is that of this process and of the
masters, as the kernel counts it, a request.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from tests.redis_cluster import RedisCluster

from veilcount_aggregator.store import ROW_BYTES, SeriesReports
from veilcount_aggregator.store.redis.store import RedisStore, open_redis
from veilcount_analysis.series.series import Series

from .ingest_load import question
from .table import Row, Table

SHARDS = (3, 12, 16, 48)
REPORTS = (1, 100)
GROUP = 32
SLOTS = 128
COLUMNS = {"shards": "", "n": "", "requests/s": ",.0f", "app": ".4g", "Redis": ".4g", "/ 3": ".3g"}
NOTES = (
    "us of CPU a request of n reports of one pseudonym, in the commit alone and in three masters;",
    "/ 3: the sum of both, over that of as many shards as masters, in the same rounds.",
)
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a round of requests took."""

    rate: float
    app: float
    redis: float

    @property
    def both(self) -> float:
        """CPU of all processes."""
        return self.app + self.redis


def run(*, quick: bool) -> Table:
    """Load each number of shards with each size of request, in turn."""
    seconds, rounds = (1.0, 3) if quick else (3.0, 5)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        found = {shards: _store(stack, Path(name) / str(shards), shards) for shards in SHARDS}
        costs: dict[tuple[int, int], list[Cost]] = {}
        for _ in range(rounds):
            for reports in REPORTS:
                for shards, (store, pids) in found.items():
                    cost = _load(store, pids, reports, seconds)
                    costs.setdefault((shards, reports), []).append(cost)
    return Table("shards: more than masters", COLUMNS, list(_rows(costs)), NOTES)


def _store(stack: ExitStack, folder: Path, shards: int) -> tuple[RedisStore, list[int]]:
    cluster = RedisCluster(folder)
    stack.callback(cluster.close)
    store = open_redis(f"{cluster.url}?shards={shards}", make=True)
    stack.callback(store.close)
    return store, [node._process.pid for node in cluster.nodes]


def _load(store: RedisStore, pids: Sequence[int], reports: int, seconds: float) -> Cost:
    """Commit groups for so long, as the thread of an intake does."""
    series, chance, requests = Series(question(SLOTS)), np.random.default_rng(), 0
    app, redis, begun = time.process_time(), _computed(pids), time.perf_counter()
    while time.perf_counter() - begun < seconds:
        store.commit([_request(series, chance, reports) for _ in range(GROUP)], {})
        requests += GROUP
    took, each = time.perf_counter() - begun, 1e6 / requests
    used = (time.process_time() - app) * each, (_computed(pids) - redis) * each
    return Cost(requests / took, *used)


def _request(series: Series, chance: np.random.Generator, reports: int) -> SeriesReports:
    """Return reports of one new pseudonym, as a device sends them."""
    row = chance.integers(0, 256, (1, ROW_BYTES), np.uint8)
    return SeriesReports(
        series=series,
        rows=np.repeat(row, reports, axis=0),
        epochs=np.full(reports, series.epoch(1)),
        periods=np.full(reports, 1),
        segments=np.zeros(reports, np.int64),
        slots=np.arange(reports),
        messages=chance.integers(0, 64, (reports, 1), np.uint8),
        default_verdicts=np.zeros(reports, np.uint8),
        new_pseudonym_limit=1 << 40,
    )


def _rows(costs: dict[tuple[int, int], list[Cost]]) -> list[Row]:
    rows: list[Row] = []
    for (shards, reports), found in sorted(costs.items(), key=lambda each: each[0][::-1]):
        least = costs[SHARDS[0], reports]
        ratio = median(here.both / there.both for here, there in zip(found, least, strict=True))
        rows.append(
            {
                "shards": shards,
                "n": reports,
                "requests/s": median(each.rate for each in found),
                "app": median(each.app for each in found),
                "Redis": median(each.redis for each in found),
                "/ 3": ratio,
            }
        )
    return rows


def _computed(pids: Sequence[int]) -> float:
    fields = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids)
    return sum(int(each[11]) + int(each[12]) for each in fields) / _TICKS
