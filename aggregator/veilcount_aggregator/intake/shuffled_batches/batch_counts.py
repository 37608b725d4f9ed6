"""Service counters of batches: refusals by their name, and reports that could not be read."""

from __future__ import annotations

from veilcount_shared.errors import WireError

from ...errors import BatchTooEarly, BatchTooLate, SecondBatch

BATCH = "batch"
UNREADABLE = "unreadable"
UNFINISHED = "unfinished"
SECOND_BATCH = "second-batch"
_NAMES = {SecondBatch: SECOND_BATCH, BatchTooEarly: "early", BatchTooLate: "late"}


def refused_as(error: Exception) -> str:
    """Return the name under which a refusal is counted: that of the field, where it is one's."""
    return error.place if isinstance(error, WireError) else _NAMES[type(error)]
