"""Counters of hashes: of 2^40 possible ones a tally holds those that occurred.

They are two rows: the hashes, ascending, and their counts. Wherever counters are summed, stored or
moved, an array of two dimensions is this, and one of one dimension a counter for each place.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .packed_rows import Counters

DENSE_LIMIT = 1 << 32  # counters beyond which no array has one for each place
NO_HASHES: Counters = np.zeros((2, 0), np.int64)


def merge_hash_counts(summands: Iterable[Counters]) -> Counters:
    """Return the sum, each hash once."""
    hashes, counts = np.concatenate([NO_HASHES, *summands], axis=1)
    unique, places = np.unique(hashes, return_inverse=True)
    total = np.zeros(len(unique), np.int64)
    np.add.at(total, places, counts)
    return np.stack([unique, total])
