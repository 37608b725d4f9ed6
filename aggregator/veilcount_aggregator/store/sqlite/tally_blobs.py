"""What a tally's blobs say: all counters in a row, or the places of some and the counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from veilcount_shared import Collection

from ...series.tally import touched
from ..interface import Bytes, Counters
from ..transfer_format import decode_numbers, encode_numbers


class TallyPart(NamedTuple):
    """A summand of a tally."""

    dense: bool
    body: bytes

    @classmethod
    def of(cls, counters: Counters) -> TallyPart:
        """Write counters in the shorter form."""
        places = np.flatnonzero(counters)
        if 2 * len(places) >= len(counters):
            return cls(True, encode_numbers(counters))
        return cls(False, encode_numbers(places) + encode_numbers(counters[places]))

    @classmethod
    def touched(cls, collection: Collection, messages: Bytes) -> TallyPart:
        """Return the counters that messages touch: their tally, without its many zeros."""
        places, counts = touched(collection, messages)
        return cls(False, encode_numbers(places) + encode_numbers(counts))

    @property
    def reach(self) -> int:
        """How many counters it may touch."""
        held = decode_numbers(self.body)
        return len(held) if self.dense else int(held[: len(held) // 2].max(initial=-1)) + 1

    def add_to(self, total: Counters) -> None:
        """Add it to a total; each place stands in it once."""
        held = decode_numbers(self.body)
        if self.dense:
            total[: len(held)] += held
        else:
            places, counts = np.split(held, 2)
            total[places] += counts


def trim_zeros(given: Counters) -> Counters:
    """Return numbers without the zeros at their end, which say nothing."""
    places = np.flatnonzero(given)
    return given[: places[-1] + 1 if len(places) else 0]


def pad_zeros(held: Counters, size: int) -> Counters:
    """Return numbers with zeros at their end, so many in all."""
    whole = np.zeros(max(size, len(held)), np.int64)
    whole[: len(held)] = held
    return whole
