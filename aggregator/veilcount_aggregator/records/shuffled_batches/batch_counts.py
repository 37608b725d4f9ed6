"""Service counters of batches: refusals by their name, and reports that could not be read."""

from __future__ import annotations

from veilcount_shared.errors import WireError

from ...errors import BatchTooEarly, BatchTooLate, RecordDiffers, SecondBatch

BATCH = "batch"
UNREADABLE = "unreadable"
UNFINISHED = "unfinished"
SECOND_BATCH = "second-batch"
RECORD_DIFFERS = "record-differs"
_NAMES: dict[type[Exception], str] = {
    SecondBatch: SECOND_BATCH,
    RecordDiffers: RECORD_DIFFERS,
    BatchTooEarly: "early",
    BatchTooLate: "late",
}
#: what is refused, and counted by these names
REFUSALS: tuple[type[Exception], ...] = (*_NAMES, WireError)


def refused_as(error: Exception) -> str:
    """Return the name under which a refusal is counted: that of the field, where it is one's."""
    return error.place if isinstance(error, WireError) else _NAMES[type(error)]
