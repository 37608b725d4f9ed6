"""Points and hyperplanes of PG(t-1, q) on arrays: coordinates in GF(q), numbers and incidence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.mechanisms import ProjectiveGeometry
from veilcount_shared.mechanisms.finite_field import FiniteField, get_field
from veilcount_shared.mechanisms.projective_geometry import points

Bools = NDArray[np.bool_]
Elements = NDArray[np.unsignedinteger[Any]]  # of GF(q)
Value = TypeVar("Value", int, Elements)
Numbers = NDArray[np.int32]  # of points or hyperplanes, of which there are at most 2^22


def element_type(q: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest type that holds the sum of two elements."""
    return np.uint8 if q <= 1 << 7 else np.uint16


def times(gf: FiniteField, one: int | Elements, two: Elements) -> Elements:
    """Return the products, element by element."""
    if gf.prime:
        wide = np.uint16 if gf.q < 1 << 8 else np.uint32
        product = np.multiply(one, two, dtype=wide) % wide(gf.q)
        return product.astype(element_type(gf.q))
    looked_up: Elements = _products(gf.q)[one, two]
    return looked_up


def plus(gf: FiniteField, one: Elements, two: Elements) -> Elements:
    """Return the sums, element by element."""
    return (one + two) % element_type(gf.q)(gf.q) if gf.prime else one ^ two


def minus(gf: FiniteField, element: Value) -> Value:
    """Return -element."""
    return (gf.q - element) % gf.q if gf.prime else element


def numbers(gf: FiniteField, vectors: Sequence[Elements]) -> Numbers:
    """Return the number of the point that each nonzero vector stands for; one array a coordinate.

    A vector is divided by its first nonzero coordinate; those after it make a base-q number.
    """
    size = len(vectors[0])
    scale, start, value = vectors[0] * 0, np.zeros(size, np.int32), np.zeros(size, np.int32)
    inverses = np.array([0, *map(gf.inverse, range(1, gf.q))], element_type(gf.q))
    for place, coordinate in enumerate(vectors):
        value *= gf.q
        value += times(gf, scale, coordinate)  # nothing before the first nonzero coordinate
        pivot = (scale == 0) & (coordinate != 0)
        scale[pivot] = inverses[coordinate[pivot]]
        start[pivot] = points(gf.q, len(vectors) - 1 - place)
    return start + value


def vectors(q: int, t: int, numbered: NDArray[np.int64]) -> list[Elements]:
    """Return the canonical vectors of points, one array a coordinate."""
    starts = np.array([points(q, free) for free in range(t + 1)])
    free = np.searchsorted(starts, numbered, side="right") - 1
    rest = numbered - starts[free]
    coordinates = []
    for place in range(t):
        rest, digit = np.divmod(rest, q)
        coordinates.append(np.where(free == place, 1, digit).astype(element_type(q)))
    return coordinates[::-1]


def meets(plane: ProjectiveGeometry, hyperplanes: list[Elements], x: int) -> Bools:
    """Whether each hyperplane, by its vectors, holds input x."""
    gf = get_field(plane.q)
    product = hyperplanes[0] * 0
    for coordinate, scale in zip(hyperplanes, plane.point(x), strict=True):
        if scale:
            product = plus(gf, product, times(gf, scale, coordinate))
    return np.equal(product, 0)


@lru_cache(maxsize=8)
def _products(q: int) -> Elements:
    return np.array([list(row) for row in get_field(q).products], element_type(q))
