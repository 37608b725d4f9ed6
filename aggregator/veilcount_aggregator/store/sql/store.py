"""The store in SQL: each method is one transaction, or several small ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from time import sleep
from typing import Any

import numpy as np

from veilcount_analysis.series.hash_counts import merge_hash_counts
from veilcount_analysis.series.series import Series

from ...errors import RetentionTooEarly
from ..interface import BatchChange, Cell, Records, TransferPiece
from ..series_reports import (
    Bytes,
    Codes,
    Counters,
    Flags,
    SeriesReports,
    ServiceCounter,
    ServiceCounts,
)
from ..transfer_format import decode_numbers, pad_zeros
from . import batches, intake, transfer
from .intake import RowsUnknown
from .records import SqlRecords, set_read_only
from .remembered import Remembered, ensure_series, find_series
from .row_deletion import next_range
from .tallies import SqlTally, unmerged_cells

#: between two tallies that are merged, for those who wait
PAUSE = 0.002

#: groups that are looked up after one whose rows were not all new: retries come together
LOOKED_UP = 16

#: drops at an instant or before: they become final, and nothing of them can be restored
_OLD_MARKS = "from drop_mark where series = :series and at <= :before"
_MAKE_FINAL = (
    f"update series set deleted = max(deleted, coalesce((select max(epochs) {_OLD_MARKS}), 0))"  # noqa: S608 - constants
    " where number = :series"
)


class SqlStore(SqlRecords):
    """The store in one database: each method is one transaction, or several small ones."""

    # -- the intake ----------------------------------------------------------------------------

    def __init__(self) -> None:
        self._remembered = Remembered()
        self._looking_up = 0  # groups that are to be looked up before rows are presumed new again

    @abstractmethod
    def moments(self) -> tuple[Hashable, Hashable]:
        """In a transaction of changes, return the moment that it began at, and the present one.

        A moment is over as soon as anybody writes something.
        """

    def commit(self, group: Sequence[SeriesReports], counts: ServiceCounts) -> list[Codes]:
        if not self._looking_up:
            with suppress(RowsUnknown):
                return self._commit(group, counts, presumed_new=True)
            self._looking_up = LOOKED_UP
        self._looking_up -= 1
        return self._commit(group, counts, presumed_new=False)

    def _commit(
        self, group: Sequence[SeriesReports], counts: ServiceCounts, *, presumed_new: bool
    ) -> list[Codes]:
        with self.changing() as database:
            remembered, self._remembered = self._remembered, Remembered()
            begun, _ = self.moments()
            if remembered.is_full or remembered.moment != begun:
                remembered = Remembered()
            codes = intake.commit_group(
                database, remembered, group, counts, presumed_new=presumed_new
            )
            _, remembered.moment = self.moments()
        self._remembered = remembered
        return codes

    def close_row(self, series: Series, epochs: Sequence[int], row: bytes) -> bool:
        with self.changing() as database:
            return intake.close_row(database, series, epochs, row)

    # -- retention -----------------------------------------------------------------------------

    def server_times(self) -> list[datetime]:
        return []

    def mark_dropped(self, series: Series, epochs: int, due: datetime, now: datetime) -> int:
        if now < due:
            raise RetentionTooEarly(
                f"{series.collection.name}: its epochs may be dropped from {due} on"
            )
        with self.reading() as database:
            numbers = find_series(database, series.fingerprint)
        if numbers is not None and epochs <= numbers[1]:
            return 0
        with self.changing() as database:
            number, dropped = ensure_series(database, series.fingerprint)
            if epochs <= dropped:
                return 0
            database.execute("update series set dropped = ? where number = ?", (epochs, number))
            mark = (number, epochs, int(now.timestamp()))
            database.execute("insert into drop_mark values (?, ?, ?)", mark)
        return epochs - dropped

    def finalize_dropped(self, series: Series, kept: timedelta, now: datetime) -> None:
        with self.reading() as database:
            number, _ = find_series(database, series.fingerprint) or (0, 0)
            before = {"series": number, "before": int((now - kept).timestamp())}
            due = database.execute(f"select 1 {_OLD_MARKS}", before).fetchone()
        if due:
            with self.changing() as database:
                database.execute(_MAKE_FINAL, before)
                database.execute(f"delete {_OLD_MARKS}", before)
        self._finish_tallies(series, number)

    def delete_rows(self, series: Series) -> bool:
        with self.reading() as database:
            rows = next_range(database, series.fingerprint)
        if rows is None:
            return False
        with self.writing() as database:
            rows.delete(database)
        return rows.more

    def restore_dropped(self, series: Series) -> int:
        with self.changing() as database:
            number, _ = find_series(database, series.fingerprint) or (0, 0)
            marked = database.execute(
                "select dropped - deleted from series where number = ?", (number,)
            ).fetchone()
            database.execute("update series set dropped = deleted where number = ?", (number,))
            database.execute("delete from drop_mark where series = ?", (number,))
        return int(marked[0]) if marked else 0

    def _finish_tallies(self, series: Series, number: int) -> None:
        """Merge the parts of tallies that are final, one tally at a time."""
        with self.reading() as database:
            query = "select deleted from series where number = ? and deleted > 0"
            row = database.execute(query, (number,)).fetchone()
            last = series.periods(row[0] - 1)[-1] if row else -1
            cells = unmerged_cells(database, number, last)
        for cell in cells:
            with self.changing() as database:
                SqlTally(database, number, cell).finish(series)
            sleep(PAUSE)

    # -- what the analyst reads ----------------------------------------------------------------

    def report_counts(self, series: Series) -> dict[Cell, int]:
        rows = self._read_of(series, "period, segment, n", "tally")
        return {Cell(period, segment): n for period, segment, n in rows if n > 0}

    def counters(self, series: Series, cells: Sequence[Cell]) -> Counters:
        with self.reading() as database:
            number, _ = find_series(database, series.fingerprint) or (0, 0)
            tallies = [SqlTally(database, number, cell) for cell in cells]
            if series.counts_hashes:
                return merge_hash_counts(tally.hash_counts() for tally in tallies)
            total = np.zeros(series.counters, np.int64)
            for tally in tallies:
                tally.add_to(total)
        return total

    def spend_histograms(self, series: Series) -> dict[int, Counters]:
        rows = self._read_of(series, "epoch, rows", "spent_rows")
        return {epoch: pad_zeros(decode_numbers(body), series.most) for epoch, body in rows}

    def new_pseudonyms(self, series: Series) -> dict[int, int]:
        return dict(self._read_of(series, "period, rows", "new_rows"))

    def service_counts(self) -> dict[ServiceCounter, int]:
        rows = self._read("select * from service_counter")
        return {ServiceCounter(*words): times for *words, times in rows}

    def shard_count(self) -> int:
        return 1

    def counter_limit(self) -> int | None:
        return None  # a disk is no memory

    def _read_of(self, series: Series, columns: str, table: str) -> list[Any]:
        joined = f"{table} join series on series = number where fingerprint = ?"
        query = f"select {columns} from {joined}"  # noqa: S608 - constants
        return self._read(query, series.fingerprint)

    def _read(self, query: str, *arguments: object) -> list[Any]:
        with self.reading() as database:
            rows: list[Any] = database.execute(query, arguments).fetchall()
        return rows

    # -- batches of shufflers ------------------------------------------------------------------

    def batches(self, series: Series) -> Records:
        return dict(self._read_of(series, "key, entry", "batch"))

    def batch(self, series: Series, key: str) -> bytes | None:
        query = (
            "select entry from batch join series on series = number"
            " where fingerprint = ? and key = ?"
        )
        return next((entry for (entry,) in self._read(query, series.fingerprint, key)), None)

    def spent_tokens(self, series: Series, period: int, rows: Bytes) -> Flags:
        with self.reading() as database:
            number, _ = find_series(database, series.fingerprint) or (0, 0)
            return batches.spent_tokens(database, number, period, rows)

    def change_batch(self, series: Series, change: BatchChange) -> bool:
        with self.changing() as database:
            return batches.change_batch(database, series, change)

    def forget_tokens(self, series: Series, period: int) -> None:
        with self.changing() as database:
            number, _ = ensure_series(database, series.fingerprint)
            query = "delete from spent_token where series = ? and period = ?"
            database.execute(query, (number, period))

    # -- moving, and the operator --------------------------------------------------------------

    def set_read_only(self, *, on: bool) -> None:
        with self.writing() as database:
            set_read_only(database, on=on)

    def export_pieces(self) -> Iterator[TransferPiece]:
        return transfer.pieces(self)

    def import_pieces(self, pieces: Sequence[TransferPiece]) -> None:
        with self.changing() as database:
            transfer.absorb(database, pieces)
