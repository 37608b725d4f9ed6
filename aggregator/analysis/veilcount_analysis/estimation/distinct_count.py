"""An approximate count of distinct hashes, of fixed size: HyperLogLog [FFGM07].

The same hash again changes nothing, and counts merge by the larger of each register, so that what
several processes add is counted once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .confidence_intervals import Floats

INDEX_BITS = 14  # the standard error is 1.04 / 2^7, or 0.8 %
REST_BITS = 64 - INDEX_BITS
REGISTERS = 1 << INDEX_BITS
BIAS = 0.7213 / (1 + 1.079 / REGISTERS)
SMALL = 2.5 * REGISTERS  # below it empty registers are counted instead

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class DistinctCount:
    """The registers: the longest run of leading zeros among the hashes of each."""

    registers: NDArray[np.uint8]

    @classmethod
    def from_bytes(cls, data: bytes) -> DistinctCount:
        """Return the count that was stored; of nothing, that of no hash."""
        return cls(np.frombuffer(data or bytes(REGISTERS), np.uint8))

    def to_bytes(self) -> bytes:
        """Return the registers."""
        return self.registers.tobytes()

    def with_hashes(self, hashes: Hashes) -> DistinctCount:
        """Return the count with some hashes added."""
        registers = self.registers.copy()
        index = (hashes >> np.uint64(REST_BITS)).astype(np.int64)
        rest = hashes & np.uint64((1 << REST_BITS) - 1)
        length = np.frexp(rest.astype(np.float64))[1]  # exact: a rest has less than 53 bits
        np.maximum.at(registers, index, (REST_BITS + 1 - length).astype(np.uint8))
        return DistinctCount(registers)

    @property
    def estimate(self) -> float:
        """How many distinct hashes were added, about."""
        powers: Floats = np.exp2(-self.registers.astype(np.float64))
        empty = int(np.count_nonzero(self.registers == 0))
        raw_estimate = float(BIAS * REGISTERS**2 / powers.sum())
        if raw_estimate <= SMALL and empty:
            return float(REGISTERS * np.log(REGISTERS / empty))
        return raw_estimate
