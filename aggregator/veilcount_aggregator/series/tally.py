"""Reports to counters, which merge by addition. Reports are not kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from veilcount_shared import Collection
from veilcount_shared.mechanisms import SubsetSelection

Counters = NDArray[np.int64]
Packed = NDArray[np.uint8]

BLOCK = 1 << 20  # bytes of messages that are spread out to bits together


def tally(collection: Collection, messages: Iterable[int] | Packed) -> Counters:
    """Return the counters of valid messages, given as integers or as rows of their wire bytes.

    One counter an input for subsets (how many reports support it), one a message otherwise.
    """
    rows = messages if isinstance(messages, np.ndarray) else _rows(collection, messages)
    mechanism = collection.mechanism
    if not isinstance(mechanism, SubsetSelection) or mechanism.w == 1:
        return np.bincount(numbers(rows), minlength=mechanism.counters).astype(np.int64)
    supports = np.zeros(mechanism.counters, np.int64)
    step = max(1, BLOCK // collection.message_bytes)
    for first in range(0, len(rows), step):
        supports += _supports(mechanism, rows[first : first + step])
    return supports


def touched(collection: Collection, rows: Packed) -> tuple[list[int], list[int]]:
    """Return the places of the counters that messages touch, and what they add to each.

    A tally without its zeros: where a design has millions of counters, a group touches a few.
    """
    mechanism = collection.mechanism
    if (
        isinstance(mechanism, SubsetSelection) and mechanism.w > 1
    ):  # one message touches many of few
        counters = tally(collection, rows)
        places = np.flatnonzero(counters)
        return places.tolist(), counters[places].tolist()
    found = Counter(numbers(rows).tolist())
    return list(found), list(found.values())


def only_places(collection: Collection, rows: Packed) -> NDArray[np.int64] | None:
    """Return the one counter that each message touches; None: its messages touch several."""
    mechanism = collection.mechanism
    return None if isinstance(mechanism, SubsetSelection) and mechanism.w > 1 else numbers(rows)


def numbers(rows: Packed) -> NDArray[np.int64]:
    """Return rows of at most seven bytes as numbers, the highest byte first."""
    found = rows[:, 0].astype(np.int64)
    for column in rows.T[1:]:
        found = found << 8 | column
    return found


def _supports(mechanism: SubsetSelection, rows: Packed) -> Counters:
    bits = np.unpackbits(rows[:, ::-1], axis=1, count=mechanism.bits, bitorder="little")
    if mechanism.masked:
        supports: Counters = bits.sum(axis=0, dtype=np.int64)
        return supports
    labels = bits.reshape(-1, mechanism.label_bits)
    weights = 1 << np.arange(mechanism.label_bits, dtype=np.int32)  # an input is below 2^20
    return np.bincount(labels @ weights, minlength=mechanism.k).astype(np.int64)


def _rows(collection: Collection, messages: Iterable[int]) -> Packed:
    packed = b"".join(map(collection.pack, messages))
    return np.frombuffer(packed, np.uint8).reshape(-1, collection.message_bytes)
