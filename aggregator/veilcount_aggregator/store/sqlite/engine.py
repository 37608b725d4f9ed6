"""The store's contract on one SQLite file: each method is one transaction, in words kept nearby."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import sleep
from typing import Any

import numpy as np

from ...errors import StoreError, StoreFull, StoreUnavailable
from ...series import Series
from ..contract import (
    Cell,
    Codes,
    Counters,
    Durable,
    Health,
    Note,
    Notes,
    Piece,
    Record,
    Records,
    Spends,
)
from ..pieces import parse
from . import intake, moving, shelf
from .file import SqliteFile
from .parts import padded
from .place import Place
from .tallies import Tally, unfinished

#: between two transactions of a long job, for those who wait
PAUSE = 0.002


def open_sqlite(url: str, *, make: bool) -> SqliteStore:
    """Open the store at sqlite:///relative.db or sqlite:////absolute.db."""
    file = SqliteFile(Place.of(url))
    try:
        file.open(make=make)
        return SqliteStore(file)
    except StoreError:
        file.close()
        raise


class SqliteStore:
    """One file, for the processes of one machine."""

    def __init__(self, file: SqliteFile) -> None:
        """Take a file that is open, and finish what a drop had no time for."""
        self.file = file
        with suppress(StoreFull, StoreUnavailable):  # who cannot write may still read
            self._sweep()

    # -- the intake ----------------------------------------------------------------------------

    def commit(self, group: Sequence[Spends], notes: Notes) -> list[Codes]:
        """Judge and count a group in one durable transaction."""
        with self._changing() as database:
            return intake.take(database, group, notes)

    def lane(self, group: Sequence[Spends]) -> int:  # noqa: ARG002 - one file has one writer
        """Return the only lane."""
        return 0

    def forget(self, series: Series, epochs: Sequence[int], row: bytes) -> bool:
        """Close a row wherever it stands in these epochs."""
        with self._changing() as database:
            return intake.close_row(database, series, epochs, row)

    def drop(self, series: Series, epochs: int) -> None:
        """Drop the rows of the first epochs: at once for whoever asks, on the disk by and by."""
        with self.file.reading() as database:
            found = intake.find(database, series.fingerprint)
        if found is None or found[1] < epochs:
            with self._changing() as database:
                intake.mark(database, series, epochs)
        self._finish_tallies(series, epochs)
        self._sweep()

    # -- what the analyst reads ----------------------------------------------------------------

    def sizes(self, series: Series) -> dict[Cell, int]:
        """Return how many reports each tally holds."""
        rows = self._read(
            "select period, segment, n from tally join series on series = number"
            " where fingerprint = ? and n > 0",
            series.fingerprint,
        )
        return {Cell(period, segment): n for period, segment, n in rows}

    def counters(self, series: Series, cells: Sequence[Cell]) -> Counters:
        """Return the sum of the tallies of these cells."""
        total = np.zeros(series.counters, np.int64)
        with self.file.reading() as database:
            found = intake.find(database, series.fingerprint)
            if found:
                for cell in cells:
                    Tally(database, found[0], cell).add_to(total)
        return total

    def spread(self, series: Series) -> dict[int, Counters]:
        """Return per epoch how many rows have spent 1, 2, .. slots."""
        rows = self._read(
            "select epoch, rows from spread join series on series = number where fingerprint = ?",
            series.fingerprint,
        )
        return {epoch: padded(parse(held), series.most) for epoch, held in rows}

    def fresh(self, series: Series) -> dict[int, int]:
        """Return how many new rows each period has brought."""
        return dict(
            self._read(
                "select period, rows from fresh join series on series = number"
                " where fingerprint = ?",
                series.fingerprint,
            )
        )

    def noted(self) -> dict[Note, int]:
        """Return everything that was ever noted."""
        return {Note(*words): times for *words, times in self._read("select * from note")}

    # -- the shelf -----------------------------------------------------------------------------

    def generation(self) -> int:
        """Return the number of changes of the shelf so far."""
        with self.file.reading() as database:
            return shelf.generation(database)

    def records(self, kind: str) -> Records:
        """Return all records of a kind, by key."""
        with self.file.reading() as database:
            return shelf.records(database, kind)

    def record_keys(self, kind: str) -> frozenset[str]:
        """Return the keys of all records of a kind, without their values."""
        with self.file.reading() as database:
            return shelf.record_keys(database, kind)

    def records_at(self, kind: str, keys: Collection[str]) -> Records:
        """Return the records of a kind under these keys."""
        with self.file.reading() as database:
            return shelf.records_at(database, kind, keys)

    def change(self, generation: int, records: Sequence[Record]) -> bool:
        """Write or remove all records, unless somebody else was first."""
        with self._changing() as database:
            return shelf.change(database, generation, records)

    # -- moving, and the operator --------------------------------------------------------------

    def fence(self, *, on: bool) -> None:
        """Refuse (or take) what would change the store, in every process."""
        with self.file.writing() as database:
            shelf.fence(database, on=on)

    def pieces(self) -> Iterator[Piece]:
        """Return everything, in one order."""
        return moving.pieces(self.file)

    def absorb(self, pieces: Sequence[Piece]) -> None:
        """Take over pieces of another store."""
        with self._changing() as database:
            moving.absorb(database, pieces)

    def health(self) -> Health:
        """Return how it is, or raise."""
        with self.file.reading() as database:
            fenced = shelf.fenced(database)
        if self.file.place.durable:
            return Health("sqlite", Durable.YES, "WAL, synchronous=FULL", fenced)
        return Health("sqlite", Durable.NO, "durability=relaxed: synchronous=OFF", fenced)

    def close(self) -> None:
        """Let go of connections and files."""
        self.file.close()

    # -- inside --------------------------------------------------------------------------------

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self.file.writing() as database:
            shelf.refuse_if_fenced(database)
            yield database

    def _read(self, query: str, *given: object) -> list[Any]:
        with self.file.reading() as database:
            return database.execute(query, given).fetchall()

    def _finish_tallies(self, series: Series, epochs: int) -> None:
        """Fold the counters of what was dropped, one tally at a time."""
        last = series.periods(epochs - 1)[-1] if epochs else -1
        with self.file.reading() as database:
            number, _ = intake.find(database, series.fingerprint) or (0, 0)
            cells = unfinished(database, number, last)
        for cell in cells:
            with self._changing() as database:
                Tally(database, number, cell).finish(series.counters)
            sleep(PAUSE)

    def _sweep(self) -> None:
        """Delete the rows of dropped epochs, some at a time, so that no commit waits for long."""
        with self.file.reading() as database:
            left = intake.marked(database)
        for number in left:
            more = True
            while more:
                with self.file.writing() as database:
                    more = intake.sweep(database, number)
                sleep(PAUSE)
