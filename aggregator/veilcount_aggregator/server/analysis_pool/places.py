"""Which places of the pool compute, and which processes are alive: memory that all have in common.

It is mapped before processes are forked. Each place has two numbers, which its process writes.
"""

from __future__ import annotations

import ctypes
import mmap
import time
from dataclasses import dataclass, field

PLACES = 2  # requests that are computed at a time
ALIVE_SECONDS = 5.0  # since its last sign of life, on a busy machine too
_IDLE = 0.0


@dataclass(frozen=True, slots=True)
class PoolPlace:
    """One place of the pool, and the process in it."""

    number: int
    times: ctypes.Array[ctypes.c_double] = field(repr=False)

    def begin(self) -> None:
        """Mark that a request is computed from now on."""
        self.times[2 * self.number] = time.monotonic()

    def end(self) -> None:
        """Mark that none is."""
        self.times[2 * self.number] = _IDLE

    def beat(self) -> None:
        """Give a sign of life."""
        self.times[2 * self.number + 1] = time.monotonic()

    @property
    def computing_seconds(self) -> float:
        """How long its request has been computed."""
        began = self.times[2 * self.number]
        return 0.0 if began == _IDLE else time.monotonic() - began

    @property
    def is_alive(self) -> bool:
        """Whether its process gave a sign of life a moment ago."""
        return time.monotonic() - self.times[2 * self.number + 1] < ALIVE_SECONDS


def new_places(count: int = PLACES) -> tuple[PoolPlace, ...]:
    """Return the places of a new pool."""
    times = (ctypes.c_double * (2 * count)).from_buffer(mmap.mmap(-1, mmap.PAGESIZE))
    return tuple(PoolPlace(number, times) for number in range(count))
