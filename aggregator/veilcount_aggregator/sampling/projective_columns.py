"""Points and hyperplanes of PG(t-1, q) by the million: the arithmetic of `Plane`, on columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, reduce

import numpy as np

from veilcount_shared.mechanisms import ProjectiveGeometry
from veilcount_shared.mechanisms.finite_field import FiniteField, get_field
from veilcount_shared.mechanisms.projective_geometry import points

from .mixture import Ints


@dataclass(frozen=True, eq=False)
class FieldColumns:
    """GF(q) on whole arrays, its products and inverses in tables."""

    q: int
    _field: FiniteField = field(init=False)
    _products: Ints = field(init=False)
    _inverses: Ints = field(init=False)

    def __post_init__(self) -> None:
        """Fill the tables."""
        elements = get_field(self.q)
        inverses = [0, *(elements.inverse(element) for element in range(1, self.q))]
        products = np.frombuffer(b"".join(elements.products), np.uint8).astype(np.int64)
        object.__setattr__(self, "_field", elements)
        object.__setattr__(self, "_products", products)
        object.__setattr__(self, "_inverses", np.array(inverses))

    def times(self, one: Ints, two: Ints) -> Ints:
        """Return the products."""
        if self._field.prime:
            return one * two % self.q
        products: Ints = self._products[one * self.q + two]
        return products

    def minus_dot(self, one: Ints, two: Ints) -> Ints:
        """Return -(one . two) for each column."""
        if self._field.prime:
            negative: Ints = -(one * two).sum(axis=0) % self.q
            return negative
        # In characteristic 2, minus is plus and plus is exclusive or.
        return reduce(np.bitwise_xor, (self.times(*each) for each in zip(one, two, strict=True)))

    def vectors(self, numbers: Ints, size: int) -> Ints:
        """Return the canonical vector of each point, a column of `size` coordinates.

        Its pivot 1 and the coordinates behind it, read as one base-q number, are q^d + the rest.
        """
        firsts = np.array([points(self.q, free) for free in range(size + 1)])
        free = np.searchsorted(firsts, numbers, side="right") - 1
        value = numbers - firsts[free] + self.q**free
        return np.stack([value // self.q**place % self.q for place in reversed(range(size))])

    def numbers(self, vectors: Ints) -> Ints:
        """Return the number of the point that each nonzero column stands for."""
        size = len(vectors)
        pivot = (vectors != 0).argmax(axis=0)
        scale = self._inverses[np.take_along_axis(vectors, pivot[np.newaxis], 0)[0]]
        value = np.zeros(vectors.shape[1], np.int64)
        for row in vectors:
            value = value * self.q + self.times(scale, row)
        free = size - 1 - pivot
        firsts = np.array([points(self.q, each) for each in range(size)])
        found: Ints = firsts[free] + value - self.q**free
        return found


@lru_cache(maxsize=16)
def get_columns(q: int) -> FieldColumns:
    """Return GF(q) on arrays; its tables are made once."""
    return FieldColumns(q)


def hyperplanes_through(plane: ProjectiveGeometry, x: Ints, which: Ints) -> Ints:
    """Return for each point one of the `owned` hyperplanes that hold it, by which of them.

    The coordinates of the normal away from the point's pivot are any point of PG(t-2, q).
    """
    columns = get_columns(plane.q)
    point = columns.vectors(x, plane.t)
    free = columns.vectors(which, plane.t - 1)
    pivot = (point != 0).argmax(axis=0)
    places = np.arange(plane.t)[:, np.newaxis]
    before = np.concatenate([free, np.zeros((1, len(x)), np.int64)])
    after = np.concatenate([np.zeros((1, len(x)), np.int64), free])
    normal = np.where(places < pivot, before, after) * (places != pivot)
    normal += (places == pivot) * columns.minus_dot(normal, point)
    return columns.numbers(normal)
