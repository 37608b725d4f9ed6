"""Circular convolution of any length, on a grid whose sides have no common factor [Good 1958].

Laid around such a grid, place i in row i mod `rows` and column i mod `columns`, a line's transform
is that of the rows and then of the columns, with nothing in between. Each of them is short: it
stays in the processor's cache, and its tables are small. One long transform would want as much
memory again for its factors, and again for a copy.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..scipy_modules import fft

Places = NDArray[np.int32]  # of at most 2^22
Values = NDArray[Any]
Turned = NDArray[Any]  # complex, of either precision

AT_ONCE = 32  # rows or columns: a megabyte or two
PRIMES = (2, 3, 5, 7, 11)  # of which a transform's length is made, to be quick
SIDE = 1 << 13
ASPECT = 4  # of the longer side to the shorter


@dataclass(frozen=True, slots=True)
class CycleGrid:
    """Where a line of `length` and one that repeats itself are convolved; nothing wraps around.

    All is computed in double precision. What waits between rows and columns is as long as the grid:
    `precision` is that in which it is kept, and rounded.
    """

    length: int
    rows: int
    columns: int

    @classmethod
    def from_length(cls, length: int) -> CycleGrid:
        """Return the smallest."""
        return cls(length, *_sides(2 * length))

    def repeated(self, marks: NDArray[np.bool_], precision: type = np.complex128) -> Turned:
        """Return the transform of marks that stand again before their line, as after it."""
        turned = self._turned_rows(marks.__getitem__, np.complex128)
        stored = turned if precision is np.complex128 else np.empty_like(turned, precision)
        # by a whole line, backwards
        shift_rows, shift_columns = (
            np.exp(2j * np.pi * (self.length * np.arange(side) % side) / side)
            for side in (self.rows, self.columns)
        )
        for columns in self._columns():
            block = fft.fft(turned[:, columns], axis=0)
            stored[:, columns] = block + block * np.outer(shift_rows, shift_columns[columns])
        return stored

    def convolve(
        self, take: Callable[[Places], Values], repeated: Turned, precision: type = np.complex128
    ) -> Iterator[tuple[Places, Values]]:
        """Yield the convolution of a line, in some order: places, and what stands there.

        `take` gives what the line has at some places.
        """
        turned = self._turned_rows(take, precision)
        for columns in self._columns():
            block = fft.fft(turned[:, columns].astype(np.complex128), axis=0, overwrite_x=True)
            block *= repeated[:, columns]
            turned[:, columns] = fft.ifft(block, axis=0, overwrite_x=True)
        for rows, places in self._rows():
            block = turned[rows].astype(np.complex128)
            grid = fft.irfft(block, n=self.columns, axis=1, overwrite_x=True)
            there = places < self.length
            yield places[there], np.take_along_axis(grid, places % self.columns, axis=1)[there]

    def _turned_rows(self, take: Callable[[Places], Values], precision: type) -> Turned:
        """Return the transform of each row of a line."""
        turned: Turned = np.empty((self.rows, self.columns // 2 + 1), precision)
        for rows, places in self._rows():
            values = take(np.minimum(places, self.length - 1))
            values[places >= self.length] = 0
            grid = np.zeros((len(places), self.columns))
            np.put_along_axis(grid, places % self.columns, values, axis=1)
            turned[rows] = fft.rfft(grid, axis=1, overwrite_x=True)
        return turned

    def _rows(self) -> Iterator[tuple[slice, Places]]:
        """Yield some rows, and the places in each of them; a few lie past the line's end."""
        turns = np.arange(0, self.length, self.rows, dtype=np.int32)
        for first in range(0, self.rows, AT_ONCE):
            last = min(first + AT_ONCE, self.rows)
            yield slice(first, last), np.arange(first, last, dtype=np.int32)[:, np.newaxis] + turns

    def _columns(self) -> Iterator[slice]:
        """Yield some columns of a transform."""
        count = self.columns // 2 + 1
        return (slice(first, min(first + AT_ONCE, count)) for first in range(0, count, AT_ONCE))


def _sides(least: int) -> tuple[int, int]:
    """Return the sides of the smallest grid that has so many places."""
    quick = _quick()
    sides = []
    for short in quick:
        long = bisect_left(quick, max(short, -(-least // short)))
        fits = (side for side in quick[long:] if gcd(short, side) == 1)
        if (side := next(fits, 0)) and side <= ASPECT * short:
            sides.append((short * side, short, side))
    _, rows, columns = min(sides)
    return rows, columns


def _quick() -> list[int]:
    """Return the lengths that are quick, ascending."""
    lengths = [1]
    for prime in PRIMES:
        lengths.extend(
            length * prime**power
            for length in tuple(lengths)
            for power in range(1, SIDE.bit_length())
            if length * prime**power <= SIDE
        )
    return sorted(lengths)
