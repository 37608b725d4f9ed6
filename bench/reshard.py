"""What a shard's move to another master, and a backup, hold up: 100,000 rows and large counters.

A thread for each shard commits one row after the other, and another pings both masters: a pause is
the longest time between two acknowledgements, a block the longest that a ping took.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
from redis.crc import key_slot
from tests.aggregator.store.redis.simulated_rows import count, row_reports, rows
from tests.aggregator.store.series_fixtures import LINKED
from tests.engines import CLUSTER, engine
from tests.redis_cluster import RedisCluster
from tests.redis_server import RedisServer

from veilcount_aggregator.errors import StoreError
from veilcount_aggregator.store.backup import backup
from veilcount_aggregator.store.redis.queries import figure_key
from veilcount_aggregator.store.redis.row_permutation import shard_numbers
from veilcount_aggregator.store.redis.store import RedisStore, open_redis
from veilcount_aggregator.store.series_reports import Bytes
from veilcount_aggregator.store.tally_size import COUNTER_BYTES, PAGE

from .table import Row, Table

SHARDS = 3
ROWS = 100_000  # of each shard
COUNTERS = 1_400_000  # of one tally, the largest that a definition has
FULL = bytes(COUNTER_BYTES * PAGE)  # a page of it with all its counters
BATCHES = (10, 100, 1_000)
NOTES = (
    f"{SHARDS} shards of {ROWS:,} rows on three masters, appendfsync always, and in the one that",
    f"moves a tally of {COUNTERS:,} counters in pages. Pauses: of that shard, and of the others.",
)


@dataclass
class Pauses:
    """The longest wait of each shard, and of a ping."""

    shards: dict[int, float] = field(default_factory=dict)
    block: float = 0.0


def run(*, quick: bool) -> Table:
    """Move a shard to and fro, then back all up."""
    many = ROWS // 10 if quick else ROWS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            engine(CLUSTER, folder / "cluster", f"?shards={SHARDS}") as masters,
            closing(open_redis(masters.url, make=False)) as store,
        ):
            cluster = masters.cluster
            assert cluster is not None
            _fill(store, many)
            works = {f"{size} keys at once": _mover(store, cluster, size) for size in BATCHES}
            works["backup"] = lambda: backup(masters.url, folder / "backup.db")
            lines = [_measure(store, cluster, what, work) for what, work in works.items()]
    return Table("reshard: what a move and a backup hold up", lines, NOTES)


def _fill(store: RedisStore, many: int) -> None:
    count(store, rows(many * SHARDS, 1))
    base = store.identity.bases[0]
    tally = figure_key(base, "tally", LINKED.fingerprint, "9/0")
    pages = [b"%b:%d" % (tally, page) for page in range(-(-COUNTERS // PAGE))]
    store._servers.owner(base).ask("MSET", *chain.from_iterable((page, FULL) for page in pages))


def _mover(store: RedisStore, cluster: RedisCluster, batch: int) -> Callable[[], None]:
    slot = key_slot(store.identity.bases[0])

    def move() -> None:
        source = cluster.holder(slot)
        target = next(node for node in cluster.nodes if node is not source)
        cluster.move(slot, source, target, batch)

    return move


def _measure(store: RedisStore, cluster: RedisCluster, what: str, work: Callable[[], None]) -> Row:
    with _watched(store, cluster.nodes) as pauses:
        time.sleep(0.5)
        begun = time.perf_counter()
        work()
        seconds = time.perf_counter() - begun
        time.sleep(0.5)
    others = max(pause for shard, pause in pauses.shards.items() if shard)
    return {
        "what": what,
        "seconds": seconds,
        "pause, moved": pauses.shards[0],
        "pause, others": others,
        "block, ms": 1000 * pauses.block,
    }


@contextmanager
def _watched(store: RedisStore, nodes: list[RedisServer]) -> Iterator[Pauses]:
    """Commit to each shard and ping each master, for as long as this lasts."""
    pauses, done = Pauses(), threading.Event()
    work = [threading.Thread(target=_commit, args=(store, s, pauses, done)) for s in range(SHARDS)]
    work += [threading.Thread(target=_ping, args=(node, pauses, done)) for node in nodes]
    for thread in work:
        thread.start()
    try:
        yield pauses
    finally:
        done.set()
        for thread in work:
            thread.join()


def _commit(store: RedisStore, shard: int, pauses: Pauses, done: threading.Event) -> None:
    own, last = _rows_of(store, shard), time.perf_counter()
    for row in own:
        while not done.is_set():
            with suppress(StoreError):
                store.commit([row_reports(row.reshape(1, -1))], {})
                break
            time.sleep(0.002)
        now = time.perf_counter()
        pauses.shards[shard] = max(pauses.shards.get(shard, 0.0), now - last)
        last = now
        if done.is_set():
            return


def _rows_of(store: RedisStore, shard: int) -> Bytes:
    found = rows(200_000, int(time.time_ns() % 2**32))
    own: Bytes = found[
        shard_numbers(store.identity.permutation.apply(found).places, SHARDS) == shard
    ]
    return np.ascontiguousarray(own)


def _ping(node: RedisServer, pauses: Pauses, done: threading.Event) -> None:
    with node.connection() as connection:
        while not done.wait(0.001):
            begun = time.perf_counter()
            connection.ping()
            pauses.block = max(pauses.block, time.perf_counter() - begun)
