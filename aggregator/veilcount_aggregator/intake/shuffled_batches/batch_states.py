"""What has come of the batches of a series: for estimates, and for whoever operates it."""

from __future__ import annotations

from collections.abc import Iterable

from veilcount_analysis.series.series import Series

from ...store import BatchStore
from .batch_entry import BatchEntry


def batch_entries(store: BatchStore, series: Series) -> list[BatchEntry]:
    """Return the entries of a series, by period; of a series without batches it asks nothing."""
    if series.collection.batch is None:
        return []
    entries = map(BatchEntry.decode, store.batches(series).values())
    return sorted(entries, key=lambda entry: (entry.period, entry.crowd_id))


def covers_of_periods(store: BatchStore, series: Series, periods: Iterable[int]) -> int:
    """Return how many cover reports are in the tallies of these periods."""
    numbers = set(periods)
    return sum(
        entry.covers
        for entry in batch_entries(store, series)
        if entry.is_complete and entry.period in numbers
    )
