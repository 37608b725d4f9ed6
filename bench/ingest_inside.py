"""What `ingest` measures without a server: groups before a slow disk, and Redis's memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast

import numpy as np
from tests.redis_server import RedisServer
from veilcount_aggregator.ingest.group_commit import GroupCommitter

from veilcount_aggregator.ingest.service_counters import ServiceCounters
from veilcount_aggregator.series.series import Series
from veilcount_aggregator.server.worker_supervisor import THREADS
from veilcount_aggregator.store import (
    COUNTED,
    ROW_BYTES,
    Codes,
    SeriesReports,
    ServiceCounts,
    Store,
    open_store,
)

from .ingest_load import question

COMMIT_SECONDS = 0.010
SLOTS = 64
AT_ONCE = 2_000  # rows
NEW_PSEUDONYM_LIMIT = 1 << 40

Take = Callable[[Sequence[SeriesReports]], list[Codes]]


class Slow:
    """A store whose every commit takes so long, one after the other, as those of a disk do."""

    def __init__(self, store: Store, seconds: float) -> None:
        self.lane = store.lane
        self._store = store
        self._seconds = seconds
        self._disk = threading.Lock()

    def commit(self, group: Sequence[SeriesReports], notes: ServiceCounts) -> list[Codes]:
        with self._disk:
            time.sleep(self._seconds)
            return self._store.commit(group, notes)


def group_and_direct(folder: Path, seconds: float, rounds: int) -> list[tuple[float, float]]:
    """Return the requests a second of a worker's threads, in groups and each alone, each round."""
    store = open_store(f"sqlite:///{folder}/slow.db", make=True)
    try:
        slow = cast("Store", Slow(store, COMMIT_SECONDS))
        grouped = GroupCommitter(slow, ServiceCounters(time.monotonic)).commit

        def direct(spends: Sequence[SeriesReports]) -> list[Codes]:
            return slow.commit(spends, {})

        return [(_rate(grouped, seconds), _rate(direct, seconds)) for _ in range(rounds)]
    finally:
        store.close()


def _rate(take: Take, seconds: float) -> float:
    """Return how many requests of one report are taken in a second."""
    series, done = Series(question(SLOTS)), [0] * THREADS
    begun = time.monotonic()
    ends = begun + seconds

    def send(number: int) -> None:
        chance = np.random.default_rng()
        while time.monotonic() < ends:
            take([_spends(series, 1, chance)])
            done[number] += 1

    threads = [threading.Thread(target=send, args=(number,)) for number in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sum(done) / (time.monotonic() - begun)  # with those that had still to wait


def bytes_a_row(folder: Path, rows: int, slots: int = SLOTS) -> float:
    """Return by how many bytes Redis grows for each pseudonym that has spent its last slot."""
    folder.mkdir()
    server = RedisServer(folder, appendonly="no")  # the file has no part in it
    try:
        store = open_store(f"{server.url}?durability=relaxed", make=True)
        before = _memory(server)
        for spends in spending(rows, slots):
            store.commit([spends], {})
        store.close()
        return (_memory(server) - before) / rows
    finally:
        server.kill()


def spending(rows: int, slots: int) -> Iterator[SeriesReports]:
    """Yield groups in which so many new pseudonyms spend the last of their slots."""
    series, chance = Series(question(slots)), np.random.default_rng(0)
    for first in range(0, rows, AT_ONCE):
        yield _spends(series, min(AT_ONCE, rows - first), chance)


def _spends(series: Series, reports: int, chance: np.random.Generator) -> SeriesReports:
    column = np.ones(reports, np.int64)
    return SeriesReports(
        series,
        rows=chance.integers(0, 256, (reports, ROW_BYTES), np.uint8),
        epochs=column,
        periods=column,
        segments=column * 0,
        slots=column * (series.bits - 1),
        messages=chance.integers(0, 64, (reports, 1), np.uint8),
        default_verdicts=np.full(reports, COUNTED),
        new_pseudonym_limit=NEW_PSEUDONYM_LIMIT,
    )


def _memory(server: RedisServer) -> int:
    """Return what the data takes: connections, and what Lua uses for a moment, have no part."""
    with server.connection() as connection:
        info = connection.info("memory")
    return int(info["used_memory"]) - int(info["mem_clients_normal"])
