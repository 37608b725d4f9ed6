"""Batch records: what shufflers say became of their crowds, kept as they signed it."""

from __future__ import annotations

from veilcount_analysis.series.series import Series
from veilcount_shared.errors import BadField
from veilcount_shared.shuffling.batch_record import BatchRecord

from ...errors import StoreUnavailable
from ...store import Record, RecordStore

KIND = "batch-record"


def keep_record(store: RecordStore, series: Series, record: BatchRecord) -> None:
    """Store a record; a crowd has one of each state, which never changes."""
    place = f"{series.fingerprint}/{record.period}/{record.crowd_id.hex()}/{record.state:d}"
    stored = store.records_at(KIND, [place]).get(place)
    if stored is not None and stored != record.encode():
        raise BadField("record", "another one of this crowd and state was taken")
    if not store.change_record(Record(KIND, place, record.encode()), stored):
        raise StoreUnavailable("a batch record: another was written meanwhile; retry")


def batch_records(store: RecordStore, series: Series) -> list[BatchRecord]:
    """Return the records of a series, by period."""
    records = store.records(KIND)
    matches = [value for place, value in records.items() if place.startswith(series.fingerprint)]
    return sorted(map(BatchRecord.decode, matches), key=lambda record: record.period)
