"""Figures that are averages of one weight a report: unbiased, with intervals that hold.

The weights are chosen so that, whatever a device's number is, the expected weight of its message is
that number's own contribution to the figure. So the average is unbiased for every population, and
its variance is estimated without bias from the same counters.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from statistics import NormalDist

import numpy as np

from veilcount_shared.domain import Number

from .confidence_intervals import Bools, Counts, Ends, Floats
from .estimator import IntervalTarget, honest_range

#: the normal approximation is used where n times the variance is this many times the largest
#: squared deviation: no report then moves the average by more than a seventh of its standard error
MANY = 50


@dataclass(frozen=True, slots=True)
class WeightedFigures:
    """Figures in [0, 1]: unbiased values, which may leave it, and bounds, which do not."""

    value: Floats
    low: Floats
    high: Floats


def weighted_figures(
    weights: Floats, counters: Counts, miss: float, fixed: Floats | None = None
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
    normal = NormalDist().inv_cdf(1 - miss / 2) * np.sqrt(np.maximum(variance, 0) / n)
    half = np.where(enough, normal, _bernstein(spread, np.ptp(weights, axis=1), n, miss))
    near = np.clip(value, 0, 1)
    return WeightedFigures(value, np.maximum(near - half, 0), np.minimum(near + half, 1))


def _bernstein(spread: Floats, width: Floats, n: int, miss: float) -> Floats:
    """Return half an interval that holds for any independent reports and any n [MP09, thm. 11].

    For the cohort as well: its reports are independent, and their spread includes its numbers'.
    """
    if n == 1:  # one report has no spread
        return width
    each_side = log(4 / miss)
    sample = np.maximum(spread, 0) * n / (n - 1)
    return np.sqrt(2 * sample * each_side / n) + 7 * width * each_side / (3 * (n - 1))


@dataclass(frozen=True, slots=True, eq=False)
class WeightedEstimator:
    """One figure in [0, 1], from low to low + width in its own units.

    `fixed` is the average squared contribution of a number to the figure: no noise, so none of a
    cohort's.
    """

    counters: Counts
    weights: Floats  # one row
    fixed: float
    low: float = 0.0
    width: float = 1.0

    @classmethod
    def mean(
        cls, domain: Number, counters: Counts, weights: Floats, squares: Floats
    ) -> WeightedEstimator:
        """Return the estimator of a mean, by the number and square that each message decodes to."""
        fixed = float((squares @ counters)[0]) / int(counters.sum())
        return cls(counters, weights, fixed, float(domain.low), float(domain.high - domain.low))

    @property
    def n(self) -> int:
        return int(self.counters.sum())

    @property
    def points(self) -> Floats:
        return self._scaled(self.weights @ self.counters / self.n)

    @property
    def families(self) -> int:
        return 1

    def error(self, target: IntervalTarget) -> Floats:
        share = self.counters / self.n
        square = self.weights**2 @ share
        away = (self.weights @ share) ** 2 if target.sampled else self.fixed
        return self.width * np.sqrt(np.maximum(square - away, 0) / self.n)

    def interval(self, alpha: float, target: IntervalTarget) -> Ends:
        fixed = None if target.sampled else np.array([self.fixed])
        figures = weighted_figures(self.weights, self.counters, alpha, fixed)
        return self._scaled(figures.low), self._scaled(figures.high)

    def few(self, _alpha: float, target: IntervalTarget) -> Bools:
        """Whether one report still moves the figure by too much for the normal."""
        mean = self.weights @ self.counters / self.n
        farthest = np.abs(self.weights - mean[:, np.newaxis]).max(axis=1)
        variance = (self.error(target) / self.width) ** 2 * self.n
        few: Bools = self.n * variance < MANY * farthest**2
        return few

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest figure: a report counts one of the weights."""
        least, most = self._scaled(self.weights.min(axis=1)), self._scaled(self.weights.max(axis=1))
        return honest_range(self.points, least, most, fakes)

    def _scaled(self, figure: Floats) -> Floats:
        return self.low + self.width * figure
