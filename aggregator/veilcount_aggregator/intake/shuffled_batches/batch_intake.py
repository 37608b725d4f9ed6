"""Takes the parts of batches: checked, opened, and committed once each.

A part that comes again is answered with its totals once they are durable; of two that come at once
the second finds the first in the entry, since the entry changes only from what was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from veilcount_analysis.series.series import Series, utc_day
from veilcount_shared.shuffling.part import BatchPart
from veilcount_shared.shuffling.times import batch_rules

from ...errors import BatchTooLate, StoreUnavailable
from ...records.shuffled_batches.batch_entry import BatchEntry, PartTotals
from ...store import BatchChange, BatchStore
from ...store.series_reports import ROW_BYTES, Bytes, Flags
from .batch_checks import BatchOrigin, require_numbers, require_time
from .opening import OpenedPart, OpenPart, SealedPart
from .report_table import ReportTable, read_table

TRIES = 50


@dataclass(frozen=True, slots=True)
class TakenPart:
    """What a part is answered with."""

    series: Series
    number: int
    totals: PartTotals
    entry: BatchEntry
    is_new: bool  # it had not come before


@dataclass(frozen=True, slots=True)
class BatchIntake:
    """Takes parts into a store; `open_part` opens their reports."""

    store: BatchStore
    open_part: OpenPart
    development: bool = False  # a batch of any size leaves while its period is running

    def take(
        self, part: BatchPart, origin: BatchOrigin, now: datetime, marks: Sequence[bytes] = ()
    ) -> TakenPart:
        """Take a part, or refuse it; what is returned is durable. `marks`: of its canaries."""
        require_numbers(origin, part.head, any_size=self.development)
        series, key = origin.series, part.head.crowd_id.hex()
        day, table = utc_day(now).isoformat(), None
        for _ in range(TRIES):
            raw = self.store.batch(series, key)
            entry = BatchEntry.decode(raw) if raw else BatchEntry.begin(part.head, day)
            totals = entry.totals_of(part)
            is_new = totals is None
            if is_new or not entry.is_complete:  # of a whole batch a retry is answered for good
                require_time(origin, now, at_once=self.development)
                if entry.closed:
                    raise BatchTooLate("this batch was closed")
            if totals is None:
                table = table or self._table(part, origin, marks)
                change, totals, entry = self._added(part, table, entry, raw)
            else:  # written as it is: the answer to a retry waits for what the first attempt wrote
                change = _change(part, raw, entry)
            if self.store.change_batch(series, change):
                return TakenPart(series, part.number, totals, entry, is_new)
        raise StoreUnavailable("a batch: too many concurrent writers; retry")

    def _table(self, part: BatchPart, origin: BatchOrigin, marks: Sequence[bytes]) -> ReportTable:
        return read_table(origin.series, origin.period, self._open(part, origin), marks)

    def _open(self, part: BatchPart, origin: BatchOrigin) -> OpenedPart:
        head = part.head
        return self.open_part(
            SealedPart(
                origin.key_id,
                origin.secret.private_bytes_raw(),
                head.crowd_id,
                head.period,
                head.size,
                origin.plain_size,
                part.sealed,
            )
        )

    def _added(
        self, part: BatchPart, table: ReportTable, entry: BatchEntry, raw: bytes | None
    ) -> tuple[BatchChange, PartTotals, BatchEntry]:
        """Return the change that adds a part, its totals, and the entry with it."""
        counted = self._counted(table, part.head.period)
        earlier = entry.canary_positions
        canaries = {
            number: place for number, place in table.canaries.items() if number not in earlier
        }
        accepted = int(counted.sum()) + len(canaries)
        counters = table.counters(counted)
        grown = entry.with_part(part, accepted, len(table) - accepted, counters, canaries)
        spent = table.rows[counted] if table.series.has_tokens else NO_ROWS
        change = _change(part, raw, grown, spent)
        if grown.is_counted(batch_rules(table.series.collection).least):
            change = change._replace(reports=grown.n, counters=entry.sum_with(counters))
        return change, grown.totals[part.number], grown

    def _counted(self, table: ReportTable, period: int) -> Flags:
        """Return which reports count: those that can be read and whose token is unspent."""
        if not table.series.has_tokens:
            return table.readable
        spent = self.store.spent_tokens(table.series, period, table.rows)
        return table.readable & ~spent


NO_ROWS: Bytes = np.zeros((0, ROW_BYTES), np.uint8)


def _change(
    part: BatchPart, raw: bytes | None, entry: BatchEntry, spent: Bytes = NO_ROWS
) -> BatchChange:
    head = part.head
    return BatchChange(head.crowd_id.hex(), raw, entry.encode(), head.period, spent)
