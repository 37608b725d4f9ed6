"""What the end of an epoch costs a SQLite store: its rows are deleted while reports are taken.

For each decade of rows: the time a row, against one statement that deletes as many rows by a range
of the primary key; the longest time for which a step held the writer's lock; and the time to open
the store when half of the rows are deleted. Ratios are of one run, since a machine is rarely idle.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from veilcount_aggregator.store.series_reports import ROW_BYTES
from veilcount_aggregator.store.sql.remembered import ensure_series
from veilcount_aggregator.store.sql.row_deletion import ROWS_AT_ONCE
from veilcount_aggregator.store.sqlite.store import SqliteStore, open_sqlite
from veilcount_analysis.series.series import Series

from .definitions import question
from .table import Row, Table

NOTES = (
    f"steps of {ROWS_AT_ONCE:,} rows, each durable when it returns; a server pauses between, and",
    "  deletes for half of each second.",
    "us a row: of the median step, since a disk that others use delays some.",
    "by one range: us a row of one transaction that deletes as many rows, in a file of its own.",
)
SLOTS = 8
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
GROWTH = 3.0  # of the time a row, from the cheapest decade to the dearest
PLACES = 1 << 64


def run(*, quick: bool) -> Table:
    """Measure up to a million rows."""
    return _table(range(4, 6 if quick else 7))


def run_long(*, quick: bool) -> Table:
    """Measure up to ten million rows."""
    return _table(range(4, 6 if quick else 8))


def _table(decades: range) -> Table:
    measured = [_measure(10**decade) for decade in decades]
    cheapest = min(deletion.row_us for deletion in measured)
    rows = [deletion.row(cheapest) for deletion in measured]
    return Table("retention: deleting the rows of an epoch, SQLite", rows, NOTES)


@dataclass(frozen=True, slots=True)
class Deletion:
    """What the deletion of an epoch took."""

    rows: int
    row_us: float
    seconds: float
    range_us: float
    lock_ms: float
    open_ms: float

    def row(self, cheapest: float) -> Row:
        """Compare the time a row with that of the cheapest decade."""
        return {
            "rows of an epoch": self.rows,
            "us a row": self.row_us,
            "in all, s": self.seconds,
            "by one range": self.range_us,
            "lock held, ms": self.lock_ms,
            "open half way, ms": self.open_ms,
            "target": f"<= {GROWTH:g} times the cheapest",
            "met": self.row_us <= GROWTH * cheapest,
        }


def _measure(rows: int) -> Deletion:
    series = question(SLOTS)
    with tempfile.TemporaryDirectory() as folder:
        with dropped_epoch(Path(folder) / "range.db", series, rows) as store:
            begin = perf_counter()
            with store.file.writing() as database:
                database.execute("delete from ledger where series = 1 and epoch = 0")
            range_seconds = perf_counter() - begin
        path = Path(folder) / "steps.db"
        with dropped_epoch(path, series, rows) as store:
            steps = rows // ROWS_AT_ONCE
            seconds = [_step(store, series) for _ in range(steps // 2)]
        begin = perf_counter()
        store = open_sqlite(f"sqlite:///{path}", make=False)
        open_seconds = perf_counter() - begin
        seconds += [_step(store, series) for _ in range(steps - steps // 2)]
        store.close()
    return Deletion(
        rows,
        median(seconds) / ROWS_AT_ONCE * 1e6,
        sum(seconds),
        range_seconds / rows * 1e6,
        max(seconds) * 1e3,
        open_seconds * 1e3,
    )


def _step(store: SqliteStore, series: Series) -> float:
    """Time one step; all of it counts as the lock's, though the search for its end needs none."""
    begin = perf_counter()
    store.delete_rows(series)
    return perf_counter() - begin


@contextmanager
def dropped_epoch(path: Path, series: Series, rows: int) -> Iterator[SqliteStore]:
    """Yield a store with so many rows, whose epoch is over."""
    store = open_sqlite(f"sqlite:///{path}", make=True)
    fill(store, series, rows)
    store.mark_dropped(series, 1, LONG_AGO, LONG_AGO)
    store.finalize_dropped(series, timedelta(0), LONG_AGO)
    try:
        yield store
    finally:
        store.close()


def fill(store: SqliteStore, series: Series, rows: int, epoch: int = 0) -> None:
    """Write rows in the order of the primary key, a minute faster than through commits."""
    chance = np.random.default_rng(0)
    names = np.zeros((rows, ROW_BYTES), np.uint8)
    places = np.sort(chance.integers(0, PLACES, rows, np.uint64, endpoint=False))
    names[:, :8] = places.astype(">u8").view(np.uint8).reshape(rows, 8)
    names[:, 8:] = chance.integers(0, 256, (rows, ROW_BYTES - 8), np.uint8)
    with store.file.writing() as database:
        number, _ = ensure_series(database, series.fingerprint)
        database.executemany(
            "insert into ledger values (?, ?, ?, x'01')",
            ((number, epoch, name.tobytes()) for name in names),
        )
