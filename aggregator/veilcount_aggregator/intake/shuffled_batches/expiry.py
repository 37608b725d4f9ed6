"""The end of a batch: after 40 days nothing of it is taken, and its tokens are forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from veilcount_analysis.series.series import Series
from veilcount_shared.shuffling.times import UNFINISHED_FOR, grace_end

from ...records.shuffled_batches.batch_entry import BatchEntry
from ...store import BatchChange, BatchStore
from .batch_intake import NO_ROWS


def close_batches(store: BatchStore, all_series: Iterable[Series], now: datetime) -> int:
    """Close what is due; return how many batches were unfinished: their counters are dropped."""
    unfinished = 0
    for series in all_series:
        for key, raw in store.batches(series).items():
            entry = BatchEntry.decode(raw)
            due = grace_end(series.collection, entry.period) + UNFINISHED_FOR
            if entry.closed or now < due:
                continue
            if series.has_tokens:
                store.forget_tokens(series, entry.period)
            closed = entry.close().encode()
            if store.change_batch(series, BatchChange(key, raw, closed, entry.period, NO_ROWS)):
                unfinished += not entry.is_complete
    return unfinished
