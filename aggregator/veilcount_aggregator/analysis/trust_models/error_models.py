"""How far off an answer is: of a local design, of a trusted curator, and of any sample.

Errors are shares, or parts of a number's range. "Cohort" is the noise alone: what separates the
answer from the truth about those who answered. "Population" adds that they are a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, expm1, log, log1p, sinh, sqrt
from statistics import NormalDist

import numpy as np


@dataclass(frozen=True, slots=True)
class ErrorEstimate:
    """How far off: root mean square, and half the width of an interval at the stated level."""

    rmse: float
    half_width: float

    def times(self, scale: float) -> ErrorEstimate:
        """Return the same error in other units."""
        return ErrorEstimate(self.rmse * scale, self.half_width * scale)


# -- the central model -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CuratorNoise:
    """The noise of a trusted curator: Pr[z] proportional to e^(-|z| epsilon / sensitivity) [GRS09].

    Exactness ends here: what is told of the law is floats, what is drawn from it is not drawn here.
    """

    sensitivity: int
    epsilon: Fraction

    @property
    def rate(self) -> float:
        """Epsilon a unit of the count."""
        return float(self.epsilon / self.sensitivity)

    @property
    def deviation(self) -> float:
        """The standard deviation, exact: 1 / (sqrt(2) sinh(rate / 2))."""
        return 1 / (sqrt(2) * sinh(self.rate / 2))

    def half_width(self, level: float) -> int:
        """Return the least h such that the noise lies within +/- h at this level.

        Pr[|z| > h] = 2 q^(h+1) / (1 + q) with q = e^-rate.
        """
        outside = log((1 - level) / 2) + log1p(exp(-self.rate))
        return max(0, ceil(-outside / self.rate - 1))

    def difference_half_width(self, level: float) -> int:
        """Return the same for the difference of two independent draws.

        Its law is c^2 q^|d| (|d| + 1 + 2 q^2 / (1 - q^2)), c = (1 - q) / (1 + q).
        """
        low, high = -1, 2 * self.half_width((1 + level) / 2)  # both within their own: a union bound
        while high - low > 1:
            middle = (low + high) // 2
            if self._difference_beyond(middle) <= 1 - level:
                high = middle
            else:
                low = middle
        return high

    def _difference_beyond(self, h: int) -> float:
        q, rest = exp(-self.rate), -expm1(-self.rate)  # rest is 1 - q
        c = rest / (1 + q)
        constant = h + 2 + 2 * q * q / (rest * (1 + q))
        return 2 * c * c * exp(-self.rate * (h + 1)) * (constant / rest + q / rest**2)


# -- sampling --------------------------------------------------------------------------------------


def sampling_variance(inputs: int | None, frequencies: Sequence[float] | None) -> float:
    """Return n times the variance that asking a sample brings, averaged over the values.

    Not told the shares: equally common values, or (inputs None) numbers at the ends of their range,
    which is the most there can be. Shares of a number are those of equal stretches of its range.
    """
    if frequencies is None:
        return 0.25 if inputs is None else (1 - 1 / inputs) / inputs
    shares = np.clip(np.asarray(frequencies, np.float64), 0, 1)
    if inputs is None:
        places = (np.arange(len(shares)) + 0.5) / len(shares)
        mean = float(shares @ places) / float(shares.sum())
        return float(shares @ (places - mean) ** 2) / float(shares.sum())
    if len(shares) != inputs:
        raise ValueError(f"{len(shares)} shares of {inputs} values: give one for each")
    return float((shares * (1 - shares)).mean())


def with_sampling(noise: ErrorEstimate, n: int, sampling: float, level: float) -> ErrorEstimate:
    """Return the error for the population that those who answered were drawn from."""
    spread = sampling / n
    return ErrorEstimate(
        sqrt(noise.rmse**2 + spread), sqrt(noise.half_width**2 + two_sided(level) ** 2 * spread)
    )


def two_sided(level: float) -> float:
    """Return how many standard deviations a normal law reaches to either side at this level."""
    return NormalDist().inv_cdf((1 + level) / 2)
