"""Messages as rows of bytes, the highest byte first: what arrives, before it is counted."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from veilcount_shared import Collection

Counters = NDArray[np.int64]
Packed = NDArray[np.uint8]


def numbers(rows: Packed) -> NDArray[np.int64]:
    """Return rows of at most seven bytes as numbers."""
    row_numbers = rows[:, 0].astype(np.int64)
    for column in rows.T[1:]:
        row_numbers = row_numbers << 8 | column
    return row_numbers


def rows_from_numbers(values: NDArray[np.int64], width: int) -> Packed:
    """Return numbers as rows of so many bytes."""
    shifts = 8 * np.arange(width - 1, -1, -1)
    return (values[:, np.newaxis] >> shifts & 0xFF).astype(np.uint8)


def rows_from_messages(collection: Collection, messages: Iterable[int]) -> Packed:
    """Return integers of any size as rows at the collection's width."""
    packed = b"".join(map(collection.pack, messages))
    return np.frombuffer(packed, np.uint8).reshape(-1, collection.message_bytes)
