"""Optimistic updates of records: read, decide, write unless somebody else wrote meanwhile.

Definitions, keys, releases and the audit log are all kept this way, so that what may be written is
decided once, in plain functions, for every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..errors import StoreUnavailable
from .interface import Record, RecordStore

TRIES = 50

Result = TypeVar("Result")


def update_records(
    store: RecordStore, decide: Callable[[], tuple[Sequence[Record], Result]]
) -> Result:
    """Write the records that `decide` returns, and return its result; repeated after a conflict.

    `decide` reads the records itself, after the generation was read.
    """
    for _ in range(TRIES):
        generation = store.generation()
        records, result = decide()
        if not records or store.change_records(generation, records):
            return result
    raise StoreUnavailable("records: too many concurrent writers; retry")
