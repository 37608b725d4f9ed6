"""What a million devices take: rows in Redis and in a SQLite file, and the servers' own memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
from tests.engines import SQLITE, engine
from tests.processes import proportional_megabytes
from tests.redis_server import RedisServer

from veilcount_aggregator.store import COUNTED, ROW_BYTES, SeriesReports, open_store
from veilcount_aggregator.store.series_reports import Bytes
from veilcount_analysis.mechanisms.sampling import Ints

from .definitions import definitions, question
from .load import Shape, load, served
from .table import Row, Table, figure

NOTES = (
    "bytes a pseudonym: by how much the store grew, over the rows that made it grow; a row is 12",
    "  bytes of a pseudonym and a bitmap of its slots, of which the last is spent. Redis: memory;",
    "  SQLite: the file, written back and closed.",
    "MB of a server: what is its own and its share of what processes share (PSS), all processes.",
)
SLOTS = (1, 64, 366)
LIMITS = {("Redis", 64): 32.0}
AT_ONCE = 2_000  # rows
BODIES = 20_000


def run(*, quick: bool) -> Table:
    """Fill stores with rows, and load a server."""
    rows = 10**5 if quick else 10**6
    with tempfile.TemporaryDirectory() as name:
        lines = [*_rows_of(Path(name), rows), *_servers(Path(name), 1 if quick else 5)]
    return Table("memory: what devices take", lines, NOTES)


def _rows_of(folder: Path, rows: int) -> Iterator[Row]:
    for slots in SLOTS:
        for name, measure in (("Redis", _redis_bytes), ("SQLite", _file_bytes)):
            where = f"{name}, {slots} slots, {rows:,} of them"
            value = measure(folder / f"{name}{slots}", rows, slots) / rows
            limit = LIMITS.get((name, slots))
            yield figure("bytes a pseudonym, MB a million", value, where, limit)


def _redis_bytes(folder: Path, rows: int, slots: int) -> int:
    folder.mkdir()
    with closing(RedisServer(folder, appendonly="no")) as server:  # the file has no part in it
        url = f"{server.url}?durability=relaxed"
        open_store(url, make=True).close()
        before = data_bytes(server)
        _fill(url, rows, slots)
        return data_bytes(server) - before


def data_bytes(server: RedisServer) -> int:
    """Return what the data takes: connections, and what Lua uses for a moment, have no part."""
    info = server.info("memory")
    return int(info["used_memory"]) - int(info["mem_clients_normal"])


def _file_bytes(folder: Path, rows: int, slots: int) -> int:
    with engine(SQLITE, folder, "?durability=relaxed") as store:
        before = _size(folder)
        _fill(store.url, rows, slots)
        return _size(folder) - before


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def _fill(url: str, rows: int, slots: int) -> None:
    with closing(open_store(url)) as store:
        for group in spending(rows, slots):
            store.commit([group], {})


def spending(rows: int, slots: int) -> Iterator[SeriesReports]:
    """Yield groups in which so many new pseudonyms spend the last of their slots."""
    chance = np.random.default_rng(0)
    for first in range(0, rows, AT_ONCE):
        many = min(AT_ONCE, rows - first)
        who = chance.integers(0, 256, (many, ROW_BYTES), np.uint8)
        yield reports_of(who, np.full(many, question(slots).bits - 1), slots, chance)


def reports_of(who: Bytes, spent: Ints, slots: int, chance: np.random.Generator) -> SeriesReports:
    """Return a report of each row, which spends a slot, to the question with so many slots."""
    series, ones = question(slots), np.ones(len(who), np.int64)
    return SeriesReports.of_one(
        series,
        rows=who,
        epochs=ones * series.epoch(1),
        periods=ones,
        segments=ones * 0,
        slots=spent,
        messages=chance.integers(0, 64, (len(who), 1), np.uint8),
        default_verdicts=np.full(len(who), COUNTED),
        new_pseudonym_limit=1 << 40,
    )


def _servers(folder: Path, seconds: int) -> Iterator[Row]:
    """Tell what a server of one and of two workers holds, idle and after reports."""
    file = folder / "collections.toml"
    file.write_text(definitions(128), encoding="utf-8")
    for workers in (1, 2):
        with (
            engine(SQLITE, folder / f"served{workers}") as store,
            served(store, file, workers) as server,
        ):
            where = f"{workers} worker{'s' if workers > 1 else ''}, SQLite"
            yield figure("MB of a server", proportional_megabytes(server.pid), f"{where}, idle")
            costs = load(server, 128, Shape(1), BODIES // seconds, seconds)
            megabytes = proportional_megabytes(server.pid)
            yield figure("MB of a server", megabytes, f"{where}, after {costs.requests:,} requests")
