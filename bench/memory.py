"""What a million devices take: rows in Redis and in a SQLite file, and the servers' own memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from veilcount_aggregator.store import open_store

from .ingest_inside import bytes_a_row, spending
from .ingest_load import BodyFile, Shape, definitions, load, question
from .ingest_servers import engine, resident, served
from .table import Row, Table

COLUMNS = {"what": "", "value": ".4g", "where": "", "target": "", "met": ""}
NOTES = (
    "bytes a pseudonym: by how much the store grew, over the rows that made it grow; a row is 12",
    "  bytes of a pseudonym and a bitmap of its slots, of which the last is spent. Redis: memory;",
    "  SQLite: the file, written back and closed.",
    "MB of a server: what is its own and its share of what processes share (PSS), all processes.",
)
SLOTS = (1, 64, 366)
LIMITS = {("Redis", 64): 32.0}
BODIES = 20_000


def run(*, quick: bool) -> Table:
    """Fill stores with rows, and load a server."""
    rows = 10**5 if quick else 10**6
    with tempfile.TemporaryDirectory() as name:
        found = [*_rows_of(Path(name), rows), *_servers(Path(name), 1 if quick else 5)]
    return Table("memory: what devices take", COLUMNS, found, NOTES)


def _rows_of(folder: Path, rows: int) -> Iterator[Row]:
    for slots in SLOTS:
        for name, measure in (("Redis", bytes_a_row), ("SQLite", file_bytes_a_row)):
            value = measure(folder / f"{name}{slots}", rows, slots)
            where = f"{name}, {slots} slots, {rows:,} of them"
            yield _row("bytes a pseudonym, MB a million", value, where, LIMITS.get((name, slots)))


def file_bytes_a_row(folder: Path, rows: int, slots: int) -> float:
    """Return by how many bytes a SQLite file grows for each new pseudonym."""
    folder.mkdir()
    url = f"sqlite:///{folder}/rows.db?durability=relaxed"
    open_store(url, make=True).close()
    before = _size(folder)
    store = open_store(url)
    for spends in spending(rows, slots):
        store.commit([spends], {})
    store.close()
    return (_size(folder) - before) / rows


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def _servers(folder: Path, seconds: int) -> Iterator[Row]:
    """Tell what a server of one and of two workers holds, idle and after reports."""
    collection, file = question(128), folder / "collections.toml"
    file.write_text(definitions(128), encoding="utf-8")
    for workers in (1, 2):
        with (
            engine("sqlite", folder / f"served{workers}") as found,
            served("granian", found, file, workers) as server,
        ):
            where = f"{workers} worker{'s' if workers > 1 else ''}, SQLite"
            yield _row("MB of a server", resident(server.pid), f"{where}, idle")
            chance = np.random.default_rng()
            body_file = BodyFile.write(folder / "bodies", collection, Shape(1), BODIES, chance)
            heard = load(server, body_file, seconds)
            where_measured = f"{where}, after {heard.requests:,} requests"
            yield _row("MB of a server", resident(server.pid), where_measured)


def _row(what: str, value: float, where: str, limit: float | None = None) -> Row:
    row: Row = {"what": what, "value": value, "where": where}
    return row if limit is None else {**row, "target": f"<= {limit:g}", "met": value <= limit}
