"""Small records, changed by one writer at a time: read, decide, write if nobody else did.

Definitions, keys, releases and the audit log are all kept this way, so that what may be written is
decided once, in plain functions, for every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..errors import StoreUnavailable
from . import Record, Store

TRIES = 50

Told = TypeVar("Told")


def update_records(store: Store, decide: Callable[[], tuple[Sequence[Record], Told]]) -> Told:
    """Write what `decide` returns, and return what it tells; asked again if somebody was faster.

    It reads the shelf itself, after the generation was read: what it saw is what is changed.
    """
    for _ in range(TRIES):
        generation = store.generation()
        records, told = decide()
        if not records or store.change_records(generation, records):
            return told
    raise StoreUnavailable("the shelf: too many writers at once; ask again")
