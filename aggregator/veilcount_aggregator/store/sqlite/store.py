"""The store's contract on one SQLite file: each method is one transaction, in words kept nearby."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from time import sleep
from typing import Any

import numpy as np

from ...errors import RetentionTooEarly, StoreError, StoreFull, StoreUnavailable
from ...series.series import Series
from ..interface import (
    Cell,
    Codes,
    Counters,
    Durability,
    DurabilityState,
    Record,
    Records,
    SeriesReports,
    ServiceCounter,
    ServiceCounts,
    ShardHealth,
    StoreHealth,
    TransferPiece,
)
from ..memory_limit import MemoryUse
from ..transfer_format import decode_numbers
from . import intake, retention, transfer
from . import records as shelf
from .database import SqliteDatabase
from .error_mapping import store_error
from .health import PAGES_SECONDS, PROBE_SECONDS
from .incarnation import incarnation
from .page_check import is_damaged
from .tallies import SqliteTally, unmerged_cells
from .tally_blobs import pad_zeros
from .url import SqliteUrl

#: between two transactions of a long job, for those who wait
PAUSE = 0.002
#: how long a look at the pages may take: a probe waits for two seconds
PAGES_FOR_SECONDS = 0.5


def open_sqlite(url: str, *, make: bool) -> SqliteStore:
    """Open the store at sqlite:///relative.db or sqlite:////absolute.db."""
    file = SqliteDatabase(SqliteUrl.of(url))
    try:
        file.open(make=make)
        return SqliteStore(file)
    except StoreError:
        file.close()
        raise


class SqliteStore:
    """One file, for the processes of one machine."""

    def __init__(self, file: SqliteDatabase) -> None:
        """Take a file that is open, and finish what a sweep had no time for."""
        self.file = file
        with suppress(StoreFull, StoreUnavailable):  # who cannot write may still read
            self._sweep()

    # -- the intake ----------------------------------------------------------------------------

    def commit(self, group: Sequence[SeriesReports], notes: ServiceCounts) -> list[Codes]:
        """Judge and count a group in one durable transaction."""
        with self._changing() as database:
            return intake.commit_group(database, group, notes)

    def lane(self, group: Sequence[SeriesReports]) -> int:  # noqa: ARG002 - one file has one writer
        """Return the only lane."""
        return 0

    def close_row(self, series: Series, epochs: Sequence[int], row: bytes) -> bool:
        """Close a row wherever it stands in these epochs."""
        with self._changing() as database:
            return intake.close_row(database, series, epochs, row)

    # -- retention -----------------------------------------------------------------------------

    def server_times(self) -> list[datetime]:
        """Return nothing: a file has no clock but its host's."""
        return []

    def mark_dropped(self, series: Series, epochs: int, due: datetime, now: datetime) -> int:
        """Mark the first epochs as dropped: what comes for them is stale."""
        if now < due:
            raise RetentionTooEarly(
                f"{series.collection.name}: its epochs may be dropped from {due} on"
            )
        with self.file.reading() as database:
            found = intake.find_series(database, series.fingerprint)
        if found is not None and epochs <= found[1]:
            return 0
        with self._changing() as database:
            return retention.mark(database, series, epochs, now)

    def delete_dropped(self, series: Series, kept: timedelta, now: datetime) -> None:
        """Delete what was dropped so long ago: given up at once, off the disk by and by."""
        with self.file.reading() as database:
            number, _ = intake.find_series(database, series.fingerprint) or (0, 0)
            expires = retention.expires(database, number, kept, now)
        if expires:
            with self._changing() as database:
                retention.expire(database, number, now - kept)
        self._finish_tallies(series, number)
        self._sweep()

    def restore_dropped(self, series: Series) -> int:
        """Take back the drop of all epochs whose rows are still there."""
        with self._changing() as database:
            found = intake.find_series(database, series.fingerprint)
            return 0 if found is None else retention.restore(database, found[0])

    # -- what the analyst reads ----------------------------------------------------------------

    def report_counts(self, series: Series) -> dict[Cell, int]:
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
            found = intake.find_series(database, series.fingerprint)
            if found:
                for cell in cells:
                    SqliteTally(database, found[0], cell).add_to(total)
        return total

    def spend_histograms(self, series: Series) -> dict[int, Counters]:
        """Return per epoch how many rows have spent 1, 2, .. slots."""
        rows = self._read(
            "select epoch, rows from spread join series on series = number where fingerprint = ?",
            series.fingerprint,
        )
        return {epoch: pad_zeros(decode_numbers(held), series.most) for epoch, held in rows}

    def new_pseudonyms(self, series: Series) -> dict[int, int]:
        """Return how many new rows each period has brought."""
        return dict(
            self._read(
                "select period, rows from fresh join series on series = number"
                " where fingerprint = ?",
                series.fingerprint,
            )
        )

    def service_counts(self) -> dict[ServiceCounter, int]:
        """Return everything that was ever noted."""
        return {ServiceCounter(*words): times for *words, times in self._read("select * from note")}

    def memory_use(self) -> MemoryUse:
        """Return how many bytes the counters take, as they are accounted by series."""
        return MemoryUse(dict(self._read("select fingerprint, bytes from series")), None)

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

    def record_count(self, kind: str) -> int:
        """Return the number of records of a kind."""
        with self.file.reading() as database:
            return shelf.record_count(database, kind)

    def generations(self) -> Mapping[str, int]:
        """Return the generation of the last change of each kind of record."""
        with self.file.reading() as database:
            return shelf.generations(database)

    def change_records(self, generation: int, records: Sequence[Record]) -> bool:
        """Write or remove all records, unless somebody else was first."""
        with self._changing() as database:
            return shelf.change(database, generation, records)

    def incarnation(self) -> str:
        """Return which file it is, and since when its generation has only grown."""
        try:
            return incarnation(self.file.place.path, self.generation)
        except OSError as error:
            raise store_error(error, self.file.place.path) from error

    # -- moving, and the operator --------------------------------------------------------------

    def set_read_only(self, *, on: bool) -> None:
        """Refuse (or take) what would change the store, in every process."""
        with self.file.writing() as database:
            shelf.fence(database, on=on)

    def export_pieces(self) -> Iterator[TransferPiece]:
        """Return everything, in one order."""
        return transfer.pieces(self.file)

    def import_pieces(self, pieces: Sequence[TransferPiece]) -> None:
        """Take over pieces of another store."""
        with self._changing() as database:
            transfer.absorb(database, pieces)

    def durability(self) -> Durability:
        """Return what was decided when the file was opened: nobody else can change it."""
        if self.file.place.durable:
            return Durability(DurabilityState.YES, "WAL, synchronous=FULL")
        return Durability(DurabilityState.NO, "durability=relaxed: synchronous=OFF")

    def health(self) -> StoreHealth:
        """Return how it is, or raise; now and then with a write, and a look at the pages."""
        self._examine()
        with self.file.reading() as database:
            fenced = shelf.fenced(database)
        found, trouble = self.durability(), self.file.condition.trouble
        return StoreHealth("sqlite", found.durable, found.why, fenced, trouble=trouble)

    def replicate(self, kinds: Sequence[str]) -> None:
        """Do nothing: there is one file."""

    def replica(self, kind: str) -> tuple[int, Records]:
        """Return the records themselves."""
        return self.generation(), self.records(kind)

    def shards(self) -> list[ShardHealth]:
        """Return the one part that it is."""
        try:
            self.health()
        except StoreError as error:
            return [ShardHealth("0", up=False, why=str(error))]
        return [ShardHealth("0", up=True)]

    def reachable_part(self) -> tuple[SqliteStore, bool]:
        """Return itself: there are no parts."""
        return self, True

    def close(self) -> None:
        """Let go of connections and files."""
        self.file.close()

    # -- inside --------------------------------------------------------------------------------

    def _examine(self) -> None:
        """Learn whether a write lasts and pages are sound; what goes wrong is the condition's."""
        condition = self.file.condition
        with suppress(StoreError):
            if condition.due("write", PROBE_SECONDS):
                with self.file.writing(probe=True) as database:
                    shelf.touch(database)
        if condition.due("pages", PAGES_SECONDS):
            with suppress(StoreError), self.file.reading() as database:
                if is_damaged(database, PAGES_FOR_SECONDS):
                    condition.damaged()

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self.file.writing() as database:
            shelf.refuse_if_fenced(database)
            yield database

    def _read(self, query: str, *given: object) -> list[Any]:
        with self.file.reading() as database:
            return database.execute(query, given).fetchall()

    def _finish_tallies(self, series: Series, number: int) -> None:
        """Fold the counters of what was given up, one tally at a time."""
        with self.file.reading() as database:
            epochs = retention.swept(database, number)
            last = series.periods(epochs - 1)[-1] if epochs else -1
            cells = unmerged_cells(database, number, last)
        for cell in cells:
            with self._changing() as database:
                SqliteTally(database, number, cell).finish(series.counters)
            sleep(PAUSE)

    def _sweep(self) -> None:
        """Delete rows that were given up, some at a time, so that no commit waits for long."""
        with self.file.reading() as database:
            left = retention.unswept(database)
        for number in left:
            more = True
            while more:
                with self.file.writing() as database:
                    more = retention.sweep(database, number)
                sleep(PAUSE)
