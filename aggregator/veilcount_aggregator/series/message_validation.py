"""Which messages are messages: `Design.valid` for whole columns at once.

One truth, two spellings: the tests hold this against `veilcount_shared` on every design.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilcount_shared import Collection
from veilcount_shared.mechanisms import SubsetSelection

from .tally import numbers

Flags = NDArray[np.bool_]
Rows = NDArray[np.uint8]

_NUMBER_BYTES = 7  # as many as an int64 surely holds


def valid(collection: Collection, rows: Rows) -> Flags:
    """Return for each row of packed bytes whether it is a message of the collection's design."""
    if rows.shape[1] != collection.message_bytes:
        return np.zeros(len(rows), np.bool_)
    design = collection.design
    if isinstance(design, SubsetSelection) and design.w > 1:
        return _masks(design, rows) if design.masked else _members(design, rows)
    if rows.shape[1] > _NUMBER_BYTES or not isinstance(getattr(design, "messages", None), int):
        return _one_by_one(collection, rows)
    return numbers(rows) < design.messages


def _masks(design: SubsetSelection, rows: Rows) -> Flags:
    """Exactly w bits, none of them beyond the k-th."""
    bits = np.unpackbits(rows, axis=1)
    beyond = bits.shape[1] - design.bits
    fits: Flags = (bits.sum(axis=1) == design.w) & ~bits[:, :beyond].any(axis=1)
    return fits


def _members(design: SubsetSelection, rows: Rows) -> Flags:
    """Ascending members below k, the smallest in the lowest bits, nothing beyond them."""
    bits = np.unpackbits(rows[:, ::-1], axis=1, bitorder="little")
    labels = bits[:, : design.bits].reshape(len(rows), design.w, design.label_bits)
    members = labels @ (1 << np.arange(design.label_bits))
    ascending = (np.diff(members, axis=1) > 0).all(axis=1)
    fits: Flags = ascending & (members[:, -1] < design.k) & ~bits[:, design.bits :].any(axis=1)
    return fits


def _one_by_one(collection: Collection, rows: Rows) -> Flags:
    design = collection.design
    return np.array([design.valid(int.from_bytes(row.tobytes(), "big")) for row in rows], np.bool_)
