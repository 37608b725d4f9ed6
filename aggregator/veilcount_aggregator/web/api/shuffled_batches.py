"""Endpoints of shufflers: parts of batches, and records of what became of crowds."""

from __future__ import annotations

from veilcount_shared.shuffling.batch_record import RECORD_TYPE, BatchRecord
from veilcount_shared.shuffling.part import PART_TYPE, BatchPart

from ...records.api_keys import Role
from .endpoint import Api, endpoint
from .schemas import PartTaken, RecordTaken


@endpoint(
    "POST",
    "/v1/batches",
    Role.SHUFFLER,
    other_bodies={PART_TYPE: BatchPart.decode},
    returns=PartTaken,
    problems=(
        *("wrong-length", "unknown-version"),
        *("second-batch", "batch-early", "batch-late", "record-differs"),
    ),
)
def take_part(api: Api, body: BatchPart) -> PartTaken:
    """Take a part of a batch, signed by the trusted shuffler of its collection. The same part again
    has the same answer, and counts once; that of a whole batch at any time."""
    taken = api.aggregator.take_part(body, api.open_part)
    totals, entry = taken.totals, taken.entry
    return PartTaken(taken.number, entry.parts, totals.accepted, totals.unreadable, entry.missing)


@endpoint(
    "POST",
    "/v1/batch-records",
    Role.SHUFFLER,
    other_bodies={RECORD_TYPE: BatchRecord.decode},
    returns=RecordTaken,
    problems=("wrong-length", "unknown-version", "record-differs"),
)
def take_record(api: Api, body: BatchRecord) -> RecordTaken:
    """Take the signed record of what became of a crowd, unless its batch says otherwise."""
    api.aggregator.take_batch_record(body)
    return RecordTaken(body.state.name.lower())
