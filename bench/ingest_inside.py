"""What `ingest` measures without a server: Redis's memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tests.redis_server import RedisServer

from veilcount_aggregator.store import (
    COUNTED,
    ROW_BYTES,
    SeriesReports,
    open_store,
)
from veilcount_analysis.series.series import Series

from .ingest_load import question

SLOTS = 64
AT_ONCE = 2_000  # rows
NEW_PSEUDONYM_LIMIT = 1 << 40


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
