"""What shards cost: one server, and one cluster of three masters with stores of several numbers.

Groups of 32 requests are committed, in turn on each store; CPU is that of this process within the
commit, and of the servers, as the kernel counts it, a request.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from tests.engines import CLUSTER, REDIS, engine
from tests.processes import cpu_seconds

from veilcount_aggregator.store import ROW_BYTES, Store, open_store

from .memory import reports_of
from .table import Row, Table

ONE = 1  # of a server alone
SHARDS = (ONE, 3, 12, 16, 48)
REPORTS = (1, 100)
GROUP = 32
MASTERS = 3
SLOTS = 128
NOTES = (
    "us of CPU a request of n reports of one pseudonym, in the commit alone and in all servers;",
    "one shard: a server alone, no cluster; / 1: over that of it, in the same rounds;",
    "/ 3: the sum of both, over that of as many shards as masters, likewise.",
)


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
    costs: dict[tuple[int, int], list[Cost]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        stores = {}
        for shards in SHARDS:
            kind, query = (REDIS, "") if shards == ONE else (CLUSTER, f"?shards={shards}")
            servers = stack.enter_context(engine(kind, Path(name) / str(shards), query))
            store = stack.enter_context(closing(open_store(servers.url)))
            stores[shards] = store, servers.pids()
        for _ in range(rounds):
            for reports in REPORTS:
                for shards, (store, pids) in stores.items():
                    costs[reports, shards].append(_load(store, pids, reports, seconds))
    return Table("shards: more than masters", _rows(costs), NOTES)


def _load(store: Store, pids: list[int], reports: int, seconds: float) -> Cost:
    """Commit groups for so long, as the thread of an intake does; each request is a new row's."""
    chance, requests, app = np.random.default_rng(), 0, 0.0
    redis, begun = cpu_seconds(*pids), time.perf_counter()
    while time.perf_counter() - begun < seconds:
        who = chance.integers(0, 256, (GROUP, ROW_BYTES), np.uint8).repeat(reports, axis=0)
        whole = reports_of(who, np.tile(np.arange(reports), GROUP), SLOTS, chance)
        app -= time.process_time()
        store.commit([whole], {})
        app += time.process_time()
        requests += GROUP
    took, us = time.perf_counter() - begun, 1e6 / requests
    used = app * us, (cpu_seconds(*pids) - redis) * us
    return Cost(requests / took, *used)


def _rows(costs: dict[tuple[int, int], list[Cost]]) -> list[Row]:
    return [
        {
            "shards": shards,
            "n": reports,
            "requests/s": median(cost.rate for cost in turns),
            "app": median(cost.app for cost in turns),
            "Redis": median(cost.redis for cost in turns),
            "app / 1": _ratio(turns, costs[reports, ONE], "app"),
            "Redis / 1": _ratio(turns, costs[reports, ONE], "redis"),
            "/ 3": _ratio(turns, costs[reports, MASTERS], "both"),
        }
        for (reports, shards), turns in sorted(costs.items())
    ]


def _ratio(turns: list[Cost], others: list[Cost], what: str) -> float:
    """Return the median ratio of one cost to another over the rounds."""
    pairs = zip(turns, others, strict=True)
    ratio: float = median(getattr(here, what) / getattr(there, what) for here, there in pairs)
    return ratio
