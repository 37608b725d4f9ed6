"""How far weighted sums of independent Laplace noise go: by inverting the characteristic function.

P(|S| <= x) = 2 / pi int sin(t x) / t phi(t) dt from 0 on [Gil-Pelaez 1951], with phi the product
of 1 / (1 + w^2 t^2). The widths are of continuous noise of scale 1. A sum of discrete noise varies
no more, and on a lattice its cells reach half of the largest weight.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_POINTS, _REACH = 240, 10  # of t; deviations, beyond which nothing of a sum is
_LEVELS = np.geomspace(1e-3, 1, 400)  # that weights are rounded up to, by 1.7 % at most
_NOTHING = 1e-9  # a weight that only rounding makes
_HALVINGS = 36
_MOST = 64  # widths in memory


def laplace_half_widths(weights: Floats, alpha: float) -> Floats:
    """Return for each row of weights the width that its sum exceeds with probability alpha."""
    return _widths(weights.shape, np.ascontiguousarray(weights).tobytes(), alpha)


@lru_cache(maxsize=_MOST)
def _widths(shape: tuple[int, int], weights: bytes, alpha: float) -> Floats:
    rows = np.abs(np.frombuffer(weights, np.float64).reshape(shape))
    norms = np.sqrt((rows**2).sum(axis=1))
    step = np.pi / (_REACH * np.sqrt(2))  # the deviation of a row of norm 1 is sqrt(2)
    t = (np.arange(_POINTS) + 0.5) * step
    phi = np.exp(-_counts(rows / norms[:, None]) @ np.log1p((_LEVELS[:, None] * t) ** 2)) / t
    low, high = np.zeros(len(rows)), np.full(len(rows), _REACH * np.sqrt(2))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        within = (np.sin(np.outer(middle, t)) * phi).sum(axis=1) * step * 2 / np.pi
        low, high = (
            np.where(within < 1 - alpha, middle, low),
            np.where(within < 1 - alpha, high, middle),
        )
    return np.asarray(high * norms)


def _counts(rows: Floats) -> Floats:
    """Return how many weights of each row are at each level; 0 has none."""
    levels = np.searchsorted(_LEVELS, np.minimum(rows, 1.0))
    counts = np.zeros((len(rows), len(_LEVELS)))
    row, column = np.nonzero(rows > _NOTHING)
    np.add.at(counts, (row, levels[row, column]), 1)
    return counts
