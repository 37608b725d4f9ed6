"""Counters of hyperplanes to supports of points, in integers, by Singer's cycle [Singer 1938].

Let alpha be a root of x^t + f_(t-1) x^(t-1) + ... + f_0 whose powers, up to scalars, are all v
points of PG(t-1, q), and s_i the first coordinate of alpha^i. With u_e = (s_e, ..., s_(e+t-1)) the
product of the hyperplane u_e and the point alpha^i is s_(e+i): which of them meet depends on e + i
alone, so that counts of hyperplanes become supports of points by one circular correlation. Read
backwards, the hyperplanes make it a convolution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.mechanisms import ProjectiveGeometry
from veilcount_shared.mechanisms.finite_field import FiniteField, get_field
from veilcount_shared.mechanisms.projective_geometry import points

from .confidence_intervals import Counts
from .prime_factor_fft import CycleGrid, Turned
from .projective_vectors import (
    Elements,
    Numbers,
    element_type,
    meets,
    minus,
    numbers,
    plus,
    times,
    vectors,
)

SMALL = 1 << 18
#: the relative error of a transform is below u log2(length) times a small constant [Higham 2002,
#: ch. 24], rows and columns together; three transforms and a product take part, and the grid's
#: log2(2v) is below 2 log2(v)
ERROR = 32 * np.finfo(np.float64).eps
#: of transforms that are kept in single precision: that of who meets whom, that of the cells' rows,
#: and their product. Each adds to a sum at most half an eps, times the norms of both factors
#: [Cauchy-Schwarz]; a fourth is for what they round together
SINGLE = 2 * float(np.finfo(np.float32).eps)
BLOCK = 1 << 18  # cells or vectors at a time
DIGIT = 18  # bits, of counts that are too many for one transform: few enough for any length
MASK = (1 << DIGIT) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Cycle:
    """Singer-cycle order of points and hyperplanes, and the FFT of their incidence."""

    owned: int
    points: Numbers
    hyperplanes: Numbers
    grid: CycleGrid
    marks: NDArray[np.uint8]  # a bit for each place of the cycle: whether its point is met
    meets: NDArray[np.complex64]  # their transform, in half the memory

    def supports(self, cells: Counts, wanted: range) -> Counts:
        """Return how many reports' hyperplanes hold each wanted point: exactly, in integers.

        The mean of all cells is taken off first, and each point is given its share of it.
        Transforms are kept in single precision until the remainder is of some 10^7 reports, then in
        double precision. If it is so large that these might err by a quarter, its digits go one by
        one. The remainder is not kept during a transform: it is as long as all cells.
        """
        common = round(float(cells.mean()))
        norm = _norm(cells, common) * np.sqrt(2 * self.owned)  # the repeated ones too
        error = ERROR * np.log2(len(cells))
        if (error + SINGLE) * norm < 1 / 4:
            total = self._rounded(lambda at: cells[at] - common, wanted, self.meets)
        elif error * norm < 1 / 4:
            total = self._rounded(lambda at: cells[at] - common, wanted, self._meets())
        else:
            total = self._rounded(lambda at: (cells[at] - common) & MASK, wanted, self._meets())
            total += self.supports((cells - common) >> DIGIT, wanted) << DIGIT
        total += common * self.owned
        return total

    def _meets(self) -> Turned:
        """Return the transform of who meets whom, in double precision."""
        return self.grid.repeated(np.unpackbits(self.marks, count=self.grid.length) == 1)

    def _rounded(self, take: Callable[[Numbers], Counts], wanted: range, meets: Turned) -> Counts:
        """Convolve in the precision of `meets`."""
        kind = np.int32 if meets.dtype == np.complex64 else np.int64  # no sum is beyond the norm
        supports = np.empty(len(wanted) + 1, kind)  # the last: of points that are not wanted
        line = self.grid.convolve(
            lambda places: take(self.hyperplanes[places]), meets, meets.dtype.type
        )
        for places, sums in line:
            at = (self.points[places] - np.int32(wanted.start)).view(np.uint32)  # never below 0
            supports[np.minimum(at, len(wanted))] = np.rint(sums)
        return supports[:-1].astype(np.int64)


def _norm(cells: Counts, common: int) -> float:
    """Return the norm of what cells have beyond the common count."""
    blocks = (cells[first : first + BLOCK] for first in range(0, len(cells), BLOCK))
    return float(np.linalg.norm([np.linalg.norm(block - common) for block in blocks]))


def cycle(q: int, t: int) -> Cycle:
    """Return the cycle of PG(t-1, q). A few are kept: a large one (80 MB at most) and small ones.

    Making one takes about a second at most.
    """
    return _large(q, t) if points(q, t) > SMALL else _small(q, t)


def _made(q: int, t: int) -> Cycle:
    gf, v = get_field(q), points(q, t)
    low = polynomial(q, t)
    first = _first_coordinates(gf, low, v + t)
    grid = CycleGrid.from_length(v)
    marks = first[:v] == 0
    meets = grid.repeated(marks, np.complex64)  # first: before the rest takes memory
    # backwards from u_v, which is u_0 up to a scalar
    backwards = [first[place + v : place : -1] for place in range(t)]
    return Cycle(
        points(q, t - 1),
        _numbers(gf, v, lambda block: _coordinates(gf, low, first[block.start : block.stop + t])),
        _numbers(gf, v, lambda block: [backward[block] for backward in backwards]),
        grid,
        np.packbits(marks),
        meets,
    )


_small, _large = lru_cache(maxsize=16)(_made), lru_cache(maxsize=1)(_made)


def _first_coordinates(gf: FiniteField, low: list[int], count: int) -> Elements:
    """Return s_0, s_1, ...: what is known is carried on by alpha^known, twice as far each time."""
    ring = Ring(gf, low)
    elements: Elements = np.zeros(count, element_type(gf.q))
    elements[0], have = 1, len(low)
    while have < count:
        more = min(have - len(low) + 1, count - have)
        power = ring.power(have)
        for place, scale in enumerate(power):
            elements[have : have + more] = plus(
                gf, elements[have : have + more], times(gf, scale, elements[place : place + more])
            )
        have += more
    return elements


def _numbers(gf: FiniteField, v: int, take: Callable[[slice], list[Elements]]) -> Numbers:
    """Return the numbers of v vectors; `take` gives the coordinates of a block of them."""
    positions = np.empty(v, np.int32)
    for start in range(0, v, BLOCK):
        block = slice(start, min(start + BLOCK, v))
        positions[block] = numbers(gf, take(block))
    return positions


def _coordinates(gf: FiniteField, low: list[int], first: Elements) -> list[Elements]:
    """Return the coordinates of successive powers of alpha, t fewer, from the first ones alone.

    Multiplying by alpha moves each coordinate up by one, then takes f_j times the last off:
    the last of alpha^i is -s_(i+1) / f_0, any other is that above it in alpha^(i+1), mended.
    """
    last = times(gf, minus(gf, gf.inverse(low[0])), first[1:])
    coordinates = [last]
    for factor in reversed(low[1:]):
        above = coordinates[-1]
        coordinates.append(plus(gf, above[1:], times(gf, factor, last[: len(above) - 1])))
    return [coordinate[: len(first) - len(low)] for coordinate in reversed(coordinates)]


# -- the polynomial --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ring:
    """Polynomials over GF(q) modulo x^t + f: lists of t coefficients, the constant one first."""

    gf: FiniteField
    low: list[int]

    def power(self, exponent: int) -> list[int]:
        """Return x^exponent."""
        power = [1] + [0] * (len(self.low) - 1)
        for bit in f"{exponent:b}":
            power = self._times(power, power)
            if bit == "1":
                power = self._reduced([0, *power])
        return power

    def _times(self, one: list[int], two: list[int]) -> list[int]:
        product = [0] * (2 * len(self.low) - 1)
        for left, scale in enumerate(one):
            if scale:
                for right, factor in enumerate(two):
                    product[left + right] = self._sum(
                        product[left + right], self.gf.times(scale, factor)
                    )
        return self._reduced(product)

    def _reduced(self, long: list[int]) -> list[int]:
        size = len(self.low)
        while len(long) > size:
            scale = minus(self.gf, long.pop())
            if scale:
                start = len(long) - size
                for place, factor in enumerate(self.low):
                    long[start + place] = self._sum(
                        long[start + place], self.gf.times(scale, factor)
                    )
        return long

    def _sum(self, one: int, two: int) -> int:
        return (one + two) % self.gf.q if self.gf.prime else one ^ two


def polynomial(q: int, t: int) -> list[int]:
    """Return the coefficients, below x^t, of the first polynomial whose root makes the cycle.

    The powers of x must return to a scalar after v steps and no earlier. That alone makes the ring
    a field: with any zero divisor its units, up to scalars, would be fewer than v.
    """
    v, gf = points(q, t), get_field(q)
    steps = [v // prime for prime in _prime_factors(v)]
    for low in _candidates(q, t):
        ring = Ring(gf, low)
        if _scalar(ring.power(v)) and not any(_scalar(ring.power(step)) for step in steps):
            return low
    raise ArithmeticError(f"PG({t - 1}, {q}) has a cycle, but it was not found")


def _candidates(q: int, t: int) -> Iterator[list[int]]:
    """Yield all polynomials of degree t with a constant term, those with few high terms first."""
    for number in range(1, q**t):
        low, rest = [], number
        for _ in range(t):
            rest, digit = divmod(rest, q)
            low.append(digit)
        if low[0]:
            yield low


def _scalar(power: list[int]) -> bool:
    return not any(power[1:])


def _prime_factors(number: int) -> list[int]:
    factors, divisor = [], 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            factors.append(divisor)
            while number % divisor == 0:
                number //= divisor
        divisor += 1
    return factors + ([number] if number > 1 else [])


def supports(
    mechanism: ProjectiveGeometry, counters: Counts, places: Counts | None = None
) -> Counts:
    """Return how many reported hyperplanes hold each input, or each of those at `places`."""
    if places is not None and _cheaper(counters, places):
        return _cell_by_cell(mechanism, counters, places)
    support_counts = cycle(mechanism.q, mechanism.t).supports(counters, range(mechanism.k))
    return support_counts if places is None else support_counts[places]


def unused_supports(mechanism: ProjectiveGeometry, counters: Counts) -> Counts:
    """Return the supports of the points that are no input."""
    unused = range(mechanism.k, mechanism.messages)
    return cycle(mechanism.q, mechanism.t).supports(counters, unused)


def points_held(mechanism: ProjectiveGeometry, group: Counts) -> Counts:
    """Return for each message how many of a group of inputs its hyperplane holds.

    Point x lies on hyperplane u as point u lies on hyperplane x, so this decodes the group itself.
    """
    marked = np.zeros(mechanism.messages, np.int64)
    marked[group] = 1
    return cycle(mechanism.q, mechanism.t).supports(marked, range(mechanism.messages))


def _cheaper(counters: Counts, places: Counts) -> bool:
    """Whether few inputs of few messages are requested: below the work of a transform."""
    return len(places) * int(np.count_nonzero(counters)) < 4 * len(counters)


def _cell_by_cell(mechanism: ProjectiveGeometry, counters: Counts, places: Counts) -> Counts:
    support_counts = np.zeros(len(places), np.int64)
    cells = np.flatnonzero(counters)
    for first in range(0, len(cells), BLOCK):
        block = cells[first : first + BLOCK]
        hyperplanes = vectors(mechanism.q, mechanism.t, block)
        for row, x in enumerate(places):
            support_counts[row] += counters[block][meets(mechanism, hyperplanes, int(x))].sum()
    return support_counts
