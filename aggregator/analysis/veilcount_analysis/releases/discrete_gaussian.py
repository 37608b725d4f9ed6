"""The discrete Gaussian distribution: P(X = x) proportional to exp(-x^2 / (2 s^2)) [CKS20].

Its variance is at most s^2, and its moments at most those of the continuous one; tails are bounded
as stated below, so an interval covers with at least its level.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..scipy_modules import special

Floats = NDArray[np.float64]

SAFE = 1e-12  # relative rounding error of floats, added on the side of coverage


@dataclass(frozen=True, slots=True)
class DiscreteGaussianNoise:
    """The noise on each number of a release."""

    scale: float  # s

    def __post_init__(self) -> None:
        if not 0 < self.scale < inf:
            raise ValueError(f"scale = {self.scale}: give a number above 0")

    @property
    def deviation(self) -> float:
        """The standard deviation, or hardly above it where the scale is below 1/2."""
        return self.scale

    @property
    def largest_t(self) -> float:
        """All moments exist: beyond this t no bound of interest has its best."""
        return 40 / self.scale

    def half_width(self, alpha: float) -> int:
        """Return a width that noise exceeds with probability alpha at most.

        With f(x) = exp(-x^2 / (2 s^2)), the sum of f over the integers is at least the integral,
        s sqrt(2 pi). Beyond s, f is convex, so each f(x) is at most its integral over x +/- 1/2;
        nearer, over x - 1 to x. So P(|X| > w) is at most twice the normal tail beyond w + 1/2, or
        beyond w.
        """
        z = -float(special.ndtri(alpha / 2)) * (1 + SAFE)
        return max(0, ceil(z * self.scale - (0.5 if z >= 1 else 0)))

    def difference_half_width(self, alpha: float) -> int:
        """Return the same for the difference of two independent draws.

        The difference is subgaussian with variance 2 s^2 [CKS20, Cor. 17]: Chernoff's bound.
        """
        chernoff = ceil(2 * self.scale * sqrt(np.log(2 / alpha)) * (1 + SAFE)) - 1
        return max(0, min(2 * self.half_width(alpha / 2), chernoff))

    def contrast_half_widths(self, shares: Floats, alpha: float) -> Floats:
        """Return half widths of (1 - t) X - t Y, independent draws, for each t from 0 to 1."""
        z = -float(special.ndtri(alpha / 2)) * (1 + SAFE)
        return z * self.scale * np.hypot(shares, 1 - shares) + 0.5

    def weighted_half_widths(self, weights: Floats, alpha: float) -> Floats:
        """Return half widths of weighted sums of draws, one for each row of weights.

        Half of the largest weight is for sums on a lattice.
        """
        z = -float(special.ndtri(alpha / 2)) * (1 + SAFE)
        norms = np.sqrt((weights**2).sum(axis=1))
        return np.asarray(z * self.scale * norms + abs(weights).max(axis=1) / 2)

    def log_moment(self, t: float) -> float:
        """Return a bound on log E exp(t X): that of the normal distribution [CKS20, Cor. 17]."""
        return (t * self.scale) ** 2 / 2

    def draw(self, size: int, generator: Generator) -> list[int]:
        """Return noise for simulations, by inversion in floats."""
        edge = ceil(12 * self.scale) + 1
        places = np.arange(-edge, edge + 1)
        weights = np.exp(-((places / self.scale) ** 2) / 2).cumsum()
        drawn = places[np.searchsorted(weights, generator.random(size) * weights[-1])]
        return [int(number) for number in drawn]
