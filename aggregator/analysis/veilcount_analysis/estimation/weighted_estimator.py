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

from .confidence_intervals import Alpha, Bools, Counts, Ends, Floats, single
from .cover_reports import NO_COVERS, CoverReports
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
    weights: Floats,
    counters: Counts,
    miss: float,
    fixed: Floats | None = None,
    covers: CoverReports = NO_COVERS,
) -> WeightedFigures:
    """Return the figures of weights (one row each), each interval missing with probability `miss`.

    Population: reports are independent draws, and their spread is noise and sampling together.
    Cohort: the numbers are fixed, and `fixed`, the average squared contribution of a number to the
    figure, is taken off the mean square: what is left is the noise's variance alone.

    A value outside [0, 1] is first moved to its nearer end, which is nowhere farther from the true
    figure: so no interval is empty, nor of width zero unless the figure is certain.
    """
    n = int(counters.sum()) - covers.count
    value = weights @ covers.persons(counters) / n
    square = (weights**2 @ counters - covers.squared_means(weights)) / n
    variance = square - (value**2 if fixed is None else fixed)
    farthest = np.abs(weights - value[:, np.newaxis]).max(axis=1)
    enough = n * variance >= MANY * farthest**2
    normal = NormalDist().inv_cdf(1 - miss / 2) * np.sqrt(np.maximum(variance, 0) / n)
    half = np.where(enough, normal, _bernstein(weights, counters, miss, n))
    near = np.clip(value, 0, 1)
    return WeightedFigures(value, np.maximum(near - half, 0), np.minimum(near + half, 1))


def _bernstein(weights: Floats, counters: Counts, miss: float, n: int) -> Floats:
    """Return half an interval that holds for any independent reports and any n [MP09, thm. 11].

    For the cohort as well: its reports are independent, and their spread includes its numbers'; so
    are covers, which are reports like others. What the average of all misses, that of n persons
    misses as many times more as there are more reports than persons.
    """
    reports = int(counters.sum())
    width: Floats = np.ptp(weights, axis=1)
    if reports == 1:  # one report has no spread
        return width
    share = counters / reports
    spread = weights**2 @ share - (weights @ share) ** 2
    each_side = log(4 / miss)
    sample = np.maximum(spread, 0) * reports / (reports - 1)
    half = np.sqrt(2 * sample * each_side / reports)
    half += 7 * width * each_side / (3 * (reports - 1))
    wider: Floats = half * (reports / n)
    return wider


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
    covers: CoverReports = NO_COVERS

    @classmethod
    def mean(
        cls,
        domain: Number,
        counters: Counts,
        weights: Floats,
        squares: Floats,
        covers: CoverReports = NO_COVERS,
    ) -> WeightedEstimator:
        """Return the estimator of a mean, by the number and square that each message decodes to."""
        n, width = int(counters.sum()) - covers.count, float(domain.high - domain.low)
        fixed = float((squares @ covers.persons(counters))[0]) / n
        return cls(counters, weights, fixed, float(domain.low), width, covers)

    @property
    def n(self) -> int:
        return int(self.counters.sum()) - self.covers.count

    @property
    def points(self) -> Floats:
        return self._scaled(self._mean)

    @property
    def _mean(self) -> Floats:
        mean: Floats = self.weights @ self.covers.persons(self.counters) / self.n
        return mean

    @property
    def families(self) -> int:
        return 1

    def error(self, target: IntervalTarget) -> Floats:
        squares = self.weights**2 @ self.counters - self.covers.squared_means(self.weights)
        square = squares / self.n
        away = self._mean**2 if target.sampled else self.fixed
        return self.width * np.sqrt(np.maximum(square - away, 0) / self.n)

    def interval(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        fixed = None if target.sampled else np.array([self.fixed])
        figures = weighted_figures(self.weights, self.counters, single(alpha), fixed, self.covers)
        return self._scaled(figures.low), self._scaled(figures.high)

    def few(self, _alpha: Alpha, target: IntervalTarget) -> Bools:
        """Whether one report still moves the figure by too much for the normal."""
        farthest = np.abs(self.weights - self._mean[:, np.newaxis]).max(axis=1)
        variance = (self.error(target) / self.width) ** 2 * self.n
        few: Bools = self.n * variance < MANY * farthest**2
        return few

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest figure: a report counts one of the weights."""
        least, most = self._scaled(self.weights.min(axis=1)), self._scaled(self.weights.max(axis=1))
        return honest_range(self.points, least, most, fakes)

    def _scaled(self, figure: Floats) -> Floats:
        return self.low + self.width * figure
