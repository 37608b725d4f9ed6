"""Reports of a collection as columns: which messages are valid, and which counters they add to."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from veilcount_shared import Collection

from ..series.packed_rows import Counters, Packed, rows_from_messages
from .handler import Flags, handler_of


def valid_messages(collection: Collection, rows: Packed) -> Flags:
    """Return for each row whether it is a message of the collection's mechanism."""
    if rows.shape[1] != collection.message_bytes:
        return np.zeros(len(rows), np.bool_)
    return handler_of(collection.mechanism).valid_rows(rows)


def tally(collection: Collection, messages: Iterable[int] | Packed) -> Counters:
    """Return the counters of valid messages, given as integers or as rows of their wire bytes.

    One counter per input for subsets (how many reports support it), one per message otherwise.
    Tallies merge by addition; reports are not kept.
    """
    rows = (
        messages if isinstance(messages, np.ndarray) else rows_from_messages(collection, messages)
    )
    return handler_of(collection.mechanism).tally(rows)


def increments(collection: Collection, rows: Packed) -> tuple[list[int], list[int]]:
    """Return the places of the counters that messages add to, and what they add to each.

    A sparse tally: where a mechanism has millions of counters, a group adds to a few.
    """
    return handler_of(collection.mechanism).increments(rows)


def counter_places(collection: Collection, rows: Packed) -> NDArray[np.int64] | None:
    """Return the one counter that each message adds to; None: its messages add to several."""
    return handler_of(collection.mechanism).counter_places(rows)
