"""Random hyperplanes through given points of PG(t-1, q), on arrays of many devices."""

from __future__ import annotations

import numpy as np

from veilcount_shared.mechanisms import ProjectiveGeometry
from veilcount_shared.mechanisms.finite_field import get_field

from ..estimation.projective_vectors import minus, numbers, plus, times, vectors
from .mixture import Ints


def hyperplanes_through(plane: ProjectiveGeometry, x: Ints, which: Ints) -> Ints:
    """Return for each point one of the `owned` hyperplanes that hold it, by which of them.

    The coordinates of the normal away from the point's pivot are any point of PG(t-2, q).
    """
    gf = get_field(plane.q)
    point = np.stack(vectors(plane.q, plane.t, x))
    free = np.stack(vectors(plane.q, plane.t - 1, which))
    zero = np.zeros_like(free[:1])
    pivot, places = (point != 0).argmax(axis=0), np.arange(plane.t)[:, np.newaxis]
    normal = np.where(places < pivot, np.concatenate([free, zero]), np.concatenate([zero, free]))
    normal[places == pivot] = 0
    product = zero[0]
    for coordinate, scale in zip(point, normal, strict=True):
        product = plus(gf, product, times(gf, coordinate, scale))
    normal[pivot, np.arange(len(x))] = minus(gf, product)
    return numbers(gf, list(normal)).astype(np.int64)
