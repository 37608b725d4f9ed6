"""Errors of an estimate: from noise alone, and as a sample of a population.

Errors are shares, or parts of a number's range. "Cohort" is the noise alone: what separates the
answer from the truth about those who answered. "Population" adds that they are a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
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


def sampling_variance(inputs: int | None, frequencies: Sequence[float] | None) -> float:
    """Return n times the variance that asking a sample brings, averaged over the values.

    By default of equally common values, or (inputs None) of numbers at the ends of their range,
    which is the largest there is. Shares of a number are those of equal parts of its range.
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
    """Return the two-sided quantile of the standard normal distribution at this level."""
    return NormalDist().inv_cdf((1 + level) / 2)
