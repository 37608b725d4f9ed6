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
    mechanism = collection.mechanism
    if isinstance(mechanism, SubsetSelection) and mechanism.w > 1:
        return _masks(mechanism, rows) if mechanism.masked else _members(mechanism, rows)
    if rows.shape[1] > _NUMBER_BYTES or not isinstance(getattr(mechanism, "messages", None), int):
        return _one_by_one(collection, rows)
    return numbers(rows) < mechanism.messages


def _masks(mechanism: SubsetSelection, rows: Rows) -> Flags:
    """Exactly w bits, none of them beyond the k-th."""
    bits = np.unpackbits(rows, axis=1)
    beyond = bits.shape[1] - mechanism.bits
    fits: Flags = (bits.sum(axis=1) == mechanism.w) & ~bits[:, :beyond].any(axis=1)
    return fits


def _members(mechanism: SubsetSelection, rows: Rows) -> Flags:
    """Ascending members below k, the smallest in the lowest bits, nothing beyond them."""
    bits = np.unpackbits(rows[:, ::-1], axis=1, bitorder="little")
    labels = bits[:, : mechanism.bits].reshape(len(rows), mechanism.w, mechanism.label_bits)
    members = labels @ (1 << np.arange(mechanism.label_bits))
    ascending = (np.diff(members, axis=1) > 0).all(axis=1)
    fits: Flags = (
        ascending & (members[:, -1] < mechanism.k) & ~bits[:, mechanism.bits :].any(axis=1)
    )
    return fits


def _one_by_one(collection: Collection, rows: Rows) -> Flags:
    mechanism = collection.mechanism
    return np.array(
        [mechanism.valid(int.from_bytes(row.tobytes(), "big")) for row in rows], np.bool_
    )
