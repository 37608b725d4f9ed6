"""Means and variances from sums over both ends of a range, where n is secret.

With u an answer's place in its range, from 0 to 1, a release holds noised sums of u and 1 - u, or
of u^2, 2 u (1 - u) and (1 - u)^2. Each answer's terms add up to 1 whatever it is. So one answer
moves all sums together by 1 in L1 (and in L2 at most), and each has noise of the whole cost; they
add up to n, too.

Figures are of u, with what the noise leaves possible at a level.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .noise import noise_distribution
from .noise_kinds import DrawnNoise, NoiseKind
from .query import Figure

Floats = NDArray[np.float64]

_MEANS, _FINER, _ROUNDS = 501, 33, 5  # tried in all of [0, 1], then between two of them, and again
_DRAWS, _SEED = 20_000, 1
_MOST = 0.25  # the largest variance between 0 and 1


def mean_figure(sums: Sequence[int], noise: DrawnNoise, alpha: float) -> Figure:
    """Return the mean from the sums of u and 1 - u, with Fieller's interval [Fie54].

    It holds every mean t at which (1 - t) U - t (n - U) is within its own noise of 0: exactly what
    a test of t at alpha does not reject. Where the noise leaves no answers, all is possible.
    """
    up, down = sums
    if up + down <= 0:
        return 0.5, 0.0, 1.0
    distribution = noise_distribution(noise.distribution, noise.scale)

    def is_possible(means: Floats) -> NDArray[np.bool_]:
        off = np.abs((1 - means) * up - means * down)
        return np.asarray(off <= distribution.contrast_half_widths(means, alpha))

    point = min(max(up / (up + down), 0.0), 1.0)
    tried = np.union1d(np.linspace(0, 1, _MEANS), point)
    possible = np.flatnonzero(is_possible(tried))
    if not len(possible):
        return point, 0.0, 1.0

    def end(outside: float, inside: float) -> float:
        for _ in range(_ROUNDS):
            between = np.linspace(outside, inside, _FINER)
            first = max(1, int(is_possible(between).argmax()))
            outside, inside = between[first - 1 : first + 1]
        return float(outside)

    first, last = int(possible[0]), int(possible[-1])
    low = end(tried[max(0, first - 1)], tried[first])
    high = end(tried[min(len(tried) - 1, last + 1)], tried[last])
    return point, min(low, point), max(high, point)


def variance_figure(sums: Sequence[int], noise: DrawnNoise, alpha: float) -> Figure:
    """Return the variance from the sums of u^2, 2 u (1 - u) and (1 - u)^2.

    Its interval is of what the sums are without noise, drawn many times and always the same, so a
    release has one interval. A draw that leaves no answers counts to both sides.
    """
    released = np.array(sums, np.float64)
    if released.sum() <= 0:
        return _MOST / 2, 0.0, _MOST
    drawn = _variances(released[:, None] - noise.scale * _standard_noise(noise.distribution))
    impossible = np.flatnonzero(np.isnan(drawn))
    drawn[impossible[::2]], drawn[impossible[1::2]] = -np.inf, np.inf
    point = float(_variances(released[:, None])[0])
    low, high = np.quantile(drawn, [alpha / 2, 1 - alpha / 2], method="nearest")
    value, least, most = np.clip([point, min(low, point), max(high, point)], 0, _MOST)
    return float(value), float(least), float(most)


def _variances(sums: Floats) -> Floats:
    """Return E u^2 - (E u)^2 of each column, nan without answers."""
    squares, products, _ = sums
    n = sums.sum(axis=0)
    n = np.where(n > 0, n, np.nan)
    return np.asarray(squares / n - ((squares + products / 2) / n) ** 2)


@lru_cache(maxsize=2)
def _standard_noise(kind: NoiseKind) -> Floats:
    """Return noise of scale 1 on each of three sums, continuous: squares are large."""
    generator = np.random.default_rng(_SEED)
    draw = generator.laplace if kind is NoiseKind.LAPLACE else generator.normal
    return draw(size=(3, _DRAWS))
