"""The counter that a true value falls into, for a trusted curator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..domain import GRID_BITS, Number, OpenStrings
from ..randomness import RandomSource


class TrueCells(Protocol):
    """A curator's counters."""

    @property
    def size(self) -> int:
        """The number of counters."""

    def cell(self, point: int, randomness: RandomSource) -> int:
        """Return the counter of a domain's input."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A counter for each listed value."""

    size: int

    def cell(self, point: int, randomness: RandomSource) -> int:  # noqa: ARG002 - nothing is drawn
        """Return the value's own."""
        return point


@dataclass(frozen=True, slots=True)
class Grid:
    """A counter for each integer of a range."""

    domain: Number

    @property
    def size(self) -> int:
        """The number of integers."""
        return int(self.domain.high - self.domain.low) + 1

    def cell(self, point: int, randomness: RandomSource) -> int:  # noqa: ARG002 - nothing is drawn
        """Return the nearest integer to a grid point."""
        return (point * (self.size - 1) + (1 << GRID_BITS - 1)) >> GRID_BITS


@dataclass(frozen=True, slots=True)
class Hashed:
    """A counter for each bucket of each part of the devices."""

    domain: OpenStrings

    @property
    def size(self) -> int:
        """The number of buckets."""
        return self.domain.parts << self.domain.bucket_bits

    def cell(self, point: int, randomness: RandomSource) -> int:
        """Return the bucket in one part, which is drawn."""
        return self.domain.draw_bucket(point, randomness)
