"""Batch records: what shufflers say became of their crowds, kept as they signed it.

What a shuffler signed is compared with what it handed over, whichever of the two came first.
"""

from __future__ import annotations

from veilcount_analysis.series.series import Series
from veilcount_shared.shuffling.batch_record import BatchRecord, BatchState
from veilcount_shared.shuffling.part import BatchHead

from ...errors import RecordDiffers, StoreUnavailable
from ...store import Record, RecordStore, Store
from .batch_entry import BatchEntry

KIND = "batch-record"
#: states that a batch whose parts are all here cannot have; a restored store calls it lost
NOT_HANDED_OVER = frozenset({BatchState.EXPIRED, BatchState.BELOW_LEAST})


def keep_record(store: Store, series: Series, record: BatchRecord) -> None:
    """Store a record; a crowd has one of each state, which never changes."""
    _require_same_batch(store.batch(series, record.crowd_id.hex()), record)
    place = _place(series, record.crowd_id, record.period, record.state)
    stored = store.records_at(KIND, [place]).get(place)
    if stored is not None and stored != record.encode():
        why = "another one of this state was taken"
        raise RecordDiffers(record.crowd_id, record.period, why)
    if not store.change_record(Record(KIND, place, record.encode()), stored):
        raise StoreUnavailable("a batch record: another was written meanwhile; retry")


def require_recorded_numbers(store: Store, series: Series, head: BatchHead) -> None:
    """Refuse a batch that begins and of which its shuffler has signed that it is another one."""
    if store.batch(series, head.crowd_id.hex()) is not None:
        return  # another one is a second batch
    place = _place(series, head.crowd_id, head.period, BatchState.HANDED_OVER)
    stored = store.records_at(KIND, [place]).get(place)
    if stored is not None:
        record = BatchRecord.decode(stored)
        _require_same(record, head.reports, head.covers, head.digest)


def batch_records(store: RecordStore, series: Series) -> list[BatchRecord]:
    """Return the records of a series, by period, crowd and state."""
    records = store.records(KIND)
    matches = [value for place, value in records.items() if place.startswith(series.fingerprint)]
    return sorted(
        map(BatchRecord.decode, matches),
        key=lambda record: (record.period, record.crowd_id, record.state),
    )


def _require_same_batch(raw: bytes | None, record: BatchRecord) -> None:
    """Refuse a record that the parts which have come contradict.

    Their number of reports is the stated one: each part has as many as its head leaves it.
    """
    if raw is None:
        return
    entry = BatchEntry.decode(raw)
    if record.state is BatchState.HANDED_OVER:
        _require_same(record, entry.reports, entry.covers, entry.digest)
    elif record.state in NOT_HANDED_OVER and entry.is_complete:
        raise RecordDiffers(record.crowd_id, record.period, "all parts of its batch have come")


def _require_same(record: BatchRecord, reports: int, covers: int, digest: bytes) -> None:
    if (record.reports, record.covers, record.digest) != (reports, covers, digest):
        why = (
            f"it states {record.reports:,} reports and {record.covers:,} covers, the parts"
            f" {reports:,} and {covers:,}, or they are others"
        )
        raise RecordDiffers(record.crowd_id, record.period, why)


def _place(series: Series, crowd_id: bytes, period: int, state: BatchState) -> str:
    return f"{series.fingerprint}/{period}/{crowd_id.hex()}/{state:d}"
