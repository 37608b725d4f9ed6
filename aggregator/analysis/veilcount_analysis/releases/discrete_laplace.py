"""The discrete Laplace distribution: P(X = x) = (1 - q) / (1 + q) q^|x| with q = e^(-1/scale).

It is epsilon-DP for a vector of integers whose L1 sensitivity is at most epsilon x scale. Its tails
have a closed form, so an interval is exact for this distribution and not a normal approximation.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, expm1, log, log1p, sinh, sqrt

import numpy as np
from numpy.random import Generator

from .weighted_laplace import Floats, laplace_half_widths

SAFE = 1e-12  # relative rounding error of floats, added on the side of coverage
_HALVINGS = 50
_CONTRASTS = np.linspace(0, 1, 2001)  # between them a chord is above, if hardly


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceNoise:
    """The noise on each number of a release."""

    scale: float

    def __post_init__(self) -> None:
        if not 0 < self.scale < float("inf"):
            raise ValueError(f"scale = {self.scale}: give a number above 0")

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return 1 / (sqrt(2) * sinh(1 / (2 * self.scale)))

    @property
    def largest_t(self) -> float:
        """Moments exist below 1 / scale."""
        return 0.999 / self.scale

    def half_width(self, alpha: float) -> int:
        """Return the least width that noise exceeds with probability alpha at most."""
        enough = log(2 / alpha) - log1p(exp(-1 / self.scale)) + SAFE
        return max(0, ceil(self.scale * enough * (1 + SAFE)) - 1)

    def difference_half_width(self, alpha: float) -> int:
        """Return the same for the difference of two independent draws.

        Its distribution is c^2 q^|d| (|d| + 1 + 2 q^2 / (1 - q^2)), c = (1 - q) / (1 + q).
        """
        q, rest = exp(-1 / self.scale), -expm1(-1 / self.scale)  # rest is 1 - q
        c = rest / (1 + q)

        def is_enough(width: int) -> bool:
            constant = width + 2 + 2 * q * q / (rest * (1 + q))
            tail = exp(-(width + 1) / self.scale) * (constant / rest + q / rest**2)
            return 2 * c * c * tail <= alpha

        most = 2 * self.half_width(alpha / 2)  # both within their own: a union bound
        return bisect_left(range(most), True, key=is_enough)

    def contrast_half_widths(self, shares: Floats, alpha: float) -> Floats:
        """Return half widths of (1 - t) X - t Y, independent draws, for each t from 0 to 1.

        No tail is above that of a continuous draw rounded to an integer, which moves the contrast
        by 1/2 at most.
        """
        return self.scale * np.interp(shares, _CONTRASTS, _contrasts(alpha)) + 0.5

    def weighted_half_widths(self, weights: Floats, alpha: float) -> Floats:
        """Return half widths of weighted sums of draws, one for each row of weights."""
        widths = self.scale * laplace_half_widths(weights, alpha)
        return np.asarray(widths + abs(weights).max(axis=1) / 2)

    def log_moment(self, t: float) -> float:
        """Return log E exp(t X), for |t| < 1 / scale."""
        rate = 1 / self.scale
        # (1 - q)^2 / ((1 - q e^t) (1 - q e^-t)), each factor without cancellation
        return 2 * log(-expm1(-rate)) - log(-expm1(t - rate)) - log(-expm1(-t - rate))

    def draw(self, size: int, generator: Generator) -> list[int]:
        """Return noise for simulations: the difference of two geometric draws, in floats inside."""
        one, two = generator.geometric(-expm1(-1 / self.scale), size=(2, size))
        return [int(number) for number in one - two]


@lru_cache(maxsize=16)
def _contrasts(alpha: float) -> Floats:
    """Return the widths at _CONTRASTS for continuous noise of scale 1, by bisection.

    Of a X + b Y, it is exceeded by c with probability (a^2 e^(-c/a) - b^2 e^(-c/b)) / (a^2 - b^2).
    """
    a = np.maximum(_CONTRASTS, 1 - _CONTRASTS)
    b = np.clip(1 - a, 1e-12, a * (1 - 1e-6))  # equal ones are its limit
    low, high = np.zeros_like(a), np.full_like(a, 2 * log(1 / alpha) + 2)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        tail = (a * a * np.exp(-middle / a) - b * b * np.exp(-middle / b)) / (a * a - b * b)
        low, high = np.where(tail > alpha, middle, low), np.where(tail > alpha, high, middle)
    return high
