"""Figures that are averages of one weight a report: unbiased, with intervals that hold.

The weights are chosen so that, whatever a device's number is, the expected weight of its message is
that number's own contribution to the figure. So the average is unbiased for every crowd, and its
variance is estimated without bias from the same counters.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ..series.packed_rows import Counters

Floats = NDArray[np.float64]

#: the normal law is used where n times the variance is this many times the largest squared
#: deviation: no report then moves the average by more than a seventh of its standard error
MANY = 50


@dataclass(frozen=True, slots=True)
class WeightedFigures:
    """Figures in [0, 1]: unbiased values, which may leave it, and bounds, which do not."""

    value: Floats
    low: Floats
    high: Floats


def weighted_figures(
    weights: Floats, counters: Counters, miss: float, fixed: Floats | None = None
) -> WeightedFigures:
    """Return the figures of weights (one row each), each interval missing with probability `miss`.

    Population: reports are independent draws, and their spread is noise and sampling together.
    Cohort: the numbers are fixed, and `fixed`, the average squared contribution of a number to the
    figure, is taken off the mean square: what is left is the noise's variance alone.

    A value outside [0, 1] is first moved to its nearer end, which is nowhere farther from the true
    figure: so no interval is empty, nor of width zero unless the figure is certain.
    """
    n = int(counters.sum())
    share = counters / n
    value = weights @ share
    square = weights**2 @ share
    spread = square - value**2
    variance = spread if fixed is None else square - fixed
    farthest = np.abs(weights - value[:, np.newaxis]).max(axis=1)
    enough = n * variance >= MANY * farthest**2
    normal = _normal(np.maximum(variance, 0), n, miss)
    half = np.where(enough, normal, _bernstein(spread, np.ptp(weights, axis=1), n, miss))
    near = np.clip(value, 0, 1)
    return WeightedFigures(value, np.maximum(near - half, 0), np.minimum(near + half, 1))


def _normal(variance: Floats, n: int, miss: float) -> Floats:
    return NormalDist().inv_cdf(1 - miss / 2) * np.sqrt(variance / n)


def _bernstein(spread: Floats, width: Floats, n: int, miss: float) -> Floats:
    """Return half an interval that holds for any independent reports and any n [MP09, thm. 11].

    For the cohort as well: its reports are independent, and their spread includes its numbers'.
    """
    if n == 1:  # one report has no spread
        return width
    each_side = log(4 / miss)
    sample = np.maximum(spread, 0) * n / (n - 1)
    return np.sqrt(2 * sample * each_side / n) + 7 * width * each_side / (3 * (n - 1))
