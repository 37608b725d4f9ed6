"""What has come of the batches of a series: for estimates, and for whoever operates it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from veilcount_analysis.series.series import Series
from veilcount_shared.shuffling.batch_record import BatchRecord, BatchState
from veilcount_shared.shuffling.times import batch_rules, grace_end

from ...store import BatchStore, RecordStore
from .batch_entry import BatchEntry
from .record_store import batch_records


def batch_entries(store: BatchStore, series: Series) -> list[BatchEntry]:
    """Return the entries of a series, by period; of a series without batches it asks nothing."""
    if series.collection.batch is None:
        return []
    entries = map(BatchEntry.decode, store.batches(series).values())
    return sorted(entries, key=lambda entry: (entry.period, entry.crowd_id))


def covers_of_periods(store: BatchStore, series: Series, periods: Iterable[int]) -> int:
    """Return how many cover reports are in the tallies of these periods."""
    numbers, entries = set(periods), batch_entries(store, series)
    return sum(
        entry.covers
        for entry in entries
        if entry.period in numbers and entry.is_counted(batch_rules(series.collection).least)
    )


@dataclass(frozen=True, slots=True)
class PeriodBatch:
    """What has come of one period of a series, in one sentence; `healthy`: as it should be."""

    period: int
    state: str
    text: str
    healthy: bool


def batch_states(
    store: BatchStore, records: RecordStore, series: Series, now: datetime
) -> list[PeriodBatch]:
    """Return the batches of a series and the records of those that did not come."""
    entries = batch_entries(store, series)
    states = [_state_of_entry(series, entry) for entry in entries]
    arrived = {entry.crowd_id for entry in entries}
    stored_records = batch_records(records, series) if series.collection.batch else []
    states += (
        _state_of_record(series, record)
        for record in stored_records
        if record.crowd_id not in arrived
    )
    reached = {state.period for state in states}
    states += (state for state in _awaited(series, now) if state.period not in reached)
    return sorted(states, key=lambda state: state.period)


def missing_parts(store: BatchStore, series: Series) -> int:
    """Return how many parts of batches that are still taken have not come."""
    entries = batch_entries(store, series)
    return sum(len(entry.missing) for entry in entries if not entry.closed)


def _state_of_entry(series: Series, entry: BatchEntry) -> PeriodBatch:
    if entry.is_complete:
        least = batch_rules(series.collection).least
        canaries = f", of which {entry.canaries:,} are canaries of the operator"
        shown = canaries if entry.canaries else ""
        if not entry.is_counted(least):
            text = f"not counted: fewer than {least:,} reports without the operator's canaries"
            return PeriodBatch(entry.period, "below-least", text, healthy=True)
        unreadable = f", {entry.unreadable:,} unreadable" if entry.unreadable else ""
        text = f"handed over: {entry.n + entry.canaries:,} reports{shown}{unreadable}"
        return PeriodBatch(entry.period, "handed-over", text, healthy=True)
    if entry.closed:
        text = f"unfinished: {len(entry.missing)} of {entry.parts} parts never came"
        return PeriodBatch(entry.period, "unfinished", text, healthy=False)
    number = entry.missing[0] + 1
    text = f"part {number} of {entry.parts} is missing since {entry.day}"
    return PeriodBatch(entry.period, "incomplete", text, healthy=False)


def _state_of_record(series: Series, record: BatchRecord) -> PeriodBatch:
    least = batch_rules(series.collection).least
    texts = {
        BatchState.HANDED_OVER: "on its way: its shuffler has signed that it is handed over",
        BatchState.BELOW_LEAST: f"not handed over: fewer than {least:,}",
        BatchState.EXPIRED: "expired: this aggregator did not take it for 30 days",
        BatchState.LOST: "lost: its shuffler was restored from an older store",
    }
    name = record.state.name.lower().replace("_", "-")
    healthy = record.state in {BatchState.BELOW_LEAST, BatchState.HANDED_OVER}
    return PeriodBatch(record.period, name, texts[record.state], healthy)


def _awaited(series: Series, now: datetime) -> Iterator[PeriodBatch]:
    """Yield the periods whose batch is due and of which nothing is here."""
    if series.collection.batch is None:
        return
    for period in range(series.collection.periods):
        end = grace_end(series.collection, period)
        if now < end:
            return
        text = f"nothing has come since its grace ended on {end.date()}"
        yield PeriodBatch(period, "awaited", text, healthy=False)
