"""What durability costs a commit on Redis, and what the promotion of a replica loses without it."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tests.aggregator.store.redis.simulated_rows import row_reports, rows
from tests.proxy import Mood, Proxy
from tests.redis_server import REDIS, VALKEY, RedisServer

from veilcount_aggregator.errors import StoreError
from veilcount_aggregator.store import COUNTED, Store, open_store

from .table import Row, Table

NOTES = (
    "commit: a group of so many reports on one Redis of the loopback, appendfsync always, from",
    "  one thread, whose CPU it is; the least of rounds that take turns, and its ratio to the",
    "  first mode of the same run. relaxed: nothing is asked behind a write; durable: the settings",
    "  are, in the same round trip; replicas=1: WAIT too, for a replica that is 2 ms away.",
    "wait: a write on Valkey and what asks for its replica, in one round trip, on a network",
    "  without a delay; the median of writes that take turns, and its ratio to WAIT. The store",
    "  sends both.",
    "lost: eight writers commit groups of 20 reports, the network to the replica is cut, the",
    "  master killed by kill -9, its replica promoted. What was acknowledged is sent again: what",
    "  counts then had been lost.",
)
MODES = {"relaxed": "?durability=relaxed", "durable": "", "replicas=1": "?replicas=1"}
WRITERS, GROUP = 8, 20
LATENCY = 0.002  # seconds, of each piece on its way to the replica

Rows = NDArray[np.uint8]


def run(*, quick: bool) -> Table:
    """Measure the cost, then the loss."""
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for reports in (1, 100):
            found += _costs(folder / f"cost{reports}", reports, 6 if quick else 20)
        found += _waits(folder / "waits", 20 if quick else 100)
        for mode in ("durable", "replicas=1"):
            found.append(_loss(folder / f"loss-{mode}", mode, 3 if quick else 10))
    return Table("durability: what it costs, and what a promotion loses", found, NOTES)


@contextmanager
def _pair(
    folder: Path, program: str = REDIS, latency: float = LATENCY
) -> Iterator[tuple[RedisServer, RedisServer, Proxy]]:
    """Yield a master, its replica, and the network between them."""
    servers = []
    for name in ("master", "replica"):
        (folder / name).mkdir(parents=True)
        servers.append(RedisServer(folder / name, program=program, repl_diskless_sync_delay="0"))
    master, replica = servers
    between = Proxy(master.port, latency)
    replica.follow(master, through=between.port)
    try:
        yield master, replica, between
    finally:
        between.close()
        for server in servers:
            server.kill()


# -- what a commit costs ---------------------------------------------------------------------------


class _Took(NamedTuple):
    """Microseconds of a commit."""

    cpu: float
    wall: float


def _costs(folder: Path, reports: int, rounds: int) -> Iterator[Row]:
    took: dict[str, list[_Took]] = {mode: [] for mode in MODES}
    with _pair(folder) as (master, *_), ExitStack() as opened:
        open_store(master.url, make=True).close()
        stores = {
            mode: opened.enter_context(closing(open_store(master.url + query)))
            for mode, query in MODES.items()
        }
        for number in range(rounds):
            for at, (mode, store) in enumerate(stores.items()):
                took[mode].append(_took(store, reports, 10 * number + at))
    for at, kind in enumerate(_Took._fields):
        least = {mode: min(each[at] for each in times) for mode, times in took.items()}
        for mode, value in least.items():
            what = f"commit of {reports}, us, {kind}"
            ratio = value / least["relaxed"]
            yield {"what": what, "mode": mode, "value": value, "ratio": ratio}


def _took(store: Store, reports: int, seed: int, commits: int = 100) -> _Took:
    groups = [row_reports(group) for group in np.split(rows(commits * reports, seed), commits)]
    cpu, wall = time.thread_time(), time.perf_counter()
    for group in groups:
        with suppress(StoreError):  # a disk that stalls is part of what it costs
            store.commit([group], {})
    took = time.thread_time() - cpu, time.perf_counter() - wall
    return _Took(*(each / commits * 1e6 for each in took))


# -- what asks for a replica's disk ---------------------------------------------------------------

WAITS: dict[str, tuple[tuple[str, ...], ...]] = {
    "WAIT": (("WAIT", "1", "1500"),),
    "WAITAOF": (("WAITAOF", "1", "1", "1500"),),
    "WAIT, WAITAOF": (("WAIT", "1", "1000"), ("WAITAOF", "1", "1", "500")),
}


def _waits(folder: Path, writes: int) -> Iterator[Row]:
    took: dict[str, list[float]] = {mode: [] for mode in WAITS}
    with _pair(folder, VALKEY, 0.0) as (master, *_), master.connection() as connection:
        for _ in range(writes):
            for mode, questions in WAITS.items():
                pipeline = connection.pipeline(transaction=False)
                for words in (("SET", "key", "value"), *questions):
                    pipeline.execute_command(*words)
                begun = time.perf_counter()
                pipeline.execute()
                took[mode].append((time.perf_counter() - begun) * 1e6)
    for mode, times in took.items():
        value = median(times)
        ratio = value / median(took["WAIT"])
        yield {"what": "wait for a replica, us, wall", "mode": mode, "value": value, "ratio": ratio}


# -- what a promotion loses ------------------------------------------------------------------------


@dataclass
class _Writers:
    """Threads that commit groups until the master is gone, and keep what was acknowledged."""

    store: Store
    heard: list[Rows] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def write(self, seed: int) -> None:
        """Commit one group after the other."""
        generator = np.random.default_rng(seed)
        while not self.stopping.is_set():
            who = generator.integers(0, 256, (GROUP, 12), np.uint8)
            try:
                self.store.commit([row_reports(who)], {})
            except StoreError:
                return
            self.heard.append(who)


def _loss(folder: Path, mode: str, rounds: int) -> Row:
    losses = [_promotion(folder / str(number), MODES[mode], number) for number in range(rounds)]
    acknowledged, lost = (sum(each) for each in zip(*losses, strict=True))
    waits = mode == "replicas=1"
    return {
        "what": f"lost of {acknowledged:,} acknowledged, {rounds} promotions",
        "mode": mode,
        "value": lost,
        "target": "0" if waits else "",
        "met": lost == 0 if waits else None,
    }


def _promotion(folder: Path, query: str, seed: int) -> tuple[int, int]:
    """Return how many reports were acknowledged before the master's end, and how many are lost."""
    with _pair(folder) as (master, replica, between):
        with (
            closing(open_store(master.url + query, make=True)) as store,
            ThreadPoolExecutor(WRITERS) as threads,
        ):
            writers = _Writers(store)
            for number in range(WRITERS):
                threads.submit(writers.write, seed * WRITERS + number)
            time.sleep(0.7)
            between.mood = Mood.BLACKHOLE
            master.kill()
            writers.stopping.set()
        between.close()
        replica.promote()
        with closing(open_store(replica.url)) as promoted:
            return GROUP * len(writers.heard), _uncounted(promoted, writers.heard)


def _uncounted(store: Store, heard: Sequence[Rows]) -> int:
    codes = (store.commit([row_reports(who)], {})[0] for who in heard)
    return sum(int((code == COUNTED).sum()) for code in codes)
