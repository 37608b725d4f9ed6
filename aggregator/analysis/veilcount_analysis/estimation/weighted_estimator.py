"""Figures that are averages of one weight a report: unbiased, with intervals that hold.

The weights are chosen so that, whatever a device's number is, the expected weight of its message is
that number's own contribution to the figure. So the average is unbiased for every population, and
its variance is estimated without bias from the same counters.

A mean's interval is Agresti and Coull's for a population [AC98], as that of `mean`; of a cohort the
normal with the largest noise there is, whatever the numbers are. Few reports, or errors so rare
that there are few of them, have Bernstein's.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from statistics import NormalDist

import numpy as np

from veilcount_shared.domain import Number

from .confidence_intervals import (
    Alpha,
    Bools,
    Counts,
    Ends,
    Floats,
    agresti_coull,
    quantile,
    single,
)
from .cover_reports import NO_COVERS, CoverReports
from .estimator import ENOUGH, IntervalTarget, enough, honest_range

#: the normal approximation is used where n times the variance is this many times the largest
#: squared deviation: no report then moves the average by more than a seventh of its standard error
MANY = 50
FEWEST = 20  # reports that a mean's own interval takes
#: reports for each unit of the noise's kurtosis: with fewer the normal covers below .935
SETTLED = 1.5


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
    is_normal = n * variance >= MANY * farthest**2
    normal = NormalDist().inv_cdf(1 - miss / 2) * np.sqrt(np.maximum(variance, 0) / n)
    half = np.where(is_normal, normal, _bernstein(weights, counters, miss, n))
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
class DecodedNumbers:
    """The number in [0, 1] and its square that each message decodes to, and the noise of one."""

    numbers: Floats  # one row
    squares: Floats  # one row
    least_noise: float  # the variance, of the number with the least
    noise: float  # and with the largest
    kurtosis: float  # the largest fourth moment of an error, over the squared largest variance

    @classmethod
    def from_rows(
        cls, numbers: Floats, squares: Floats, rows: Floats, means: Floats
    ) -> DecodedNumbers:
        """Return the noise from the distribution of messages, a row for each bucket."""
        errors = numbers - means[:, np.newaxis]
        variances = (rows * errors**2).sum(axis=1)
        noise = float(variances.max())
        fourth = float((rows * errors**4).sum(axis=1).max())
        return cls(numbers, squares, float(variances.min()), noise, fourth / noise**2)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedAverage:
    """One figure in [0, 1]: the average weight of the persons' reports."""

    counters: Counts
    weights: Floats  # one row
    covers: CoverReports = NO_COVERS

    @property
    def n(self) -> int:
        return int(self.counters.sum()) - self.covers.count

    @property
    def points(self) -> Floats:
        mean: Floats = self.weights @ self.covers.persons(self.counters) / self.n
        return mean

    @property
    def mean_square(self) -> Floats:
        """The average squared weight of a report, with the covers' variance."""
        squares = self.weights**2 @ self.counters - self.covers.squared_means(self.weights)
        mean: Floats = squares / self.n
        return mean

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest figure: a report counts one of the weights."""
        least, most = self.weights.min(axis=1), self.weights.max(axis=1)
        return honest_range(self.points, least, most, fakes)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedMean:
    """A mean number, from low to low + width in its own units.

    `fixed` is the average square of the numbers: no noise, so none of a cohort's.
    """

    average: WeightedAverage
    decoded: DecodedNumbers
    low: float = 0.0
    width: float = 1.0

    @classmethod
    def from_counters(
        cls,
        domain: Number,
        counters: Counts,
        decoded: DecodedNumbers,
        covers: CoverReports = NO_COVERS,
    ) -> WeightedMean:
        """Return the estimator, from at least one report of a person."""
        average = WeightedAverage(counters, decoded.numbers, covers)
        return cls(average, decoded, float(domain.low), float(domain.high - domain.low))

    @property
    def n(self) -> int:
        return self.average.n

    @property
    def points(self) -> Floats:
        return self._scaled(self.average.points)

    @property
    def families(self) -> int:
        return 1

    @property
    def fixed(self) -> Floats:
        """The average squared number."""
        persons = self.average.covers.persons(self.average.counters)
        square: Floats = self.decoded.squares @ persons / self.n
        return square

    def error(self, target: IntervalTarget) -> Floats:
        away = self.average.points**2 if target.sampled else self.fixed
        variance = np.maximum(self.average.mean_square - away, 0)
        return self.width * np.sqrt(variance / self.n)

    def interval(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        """Return the interval, within the range of the numbers.

        A centre outside is first moved to its nearer end, which is nowhere farther from the truth.
        """
        centre, half = self._interval(single(alpha), target)
        near = np.clip(centre, 0, 1)
        return self._scaled(np.maximum(near - half, 0)), self._scaled(np.minimum(near + half, 1))

    def _interval(self, alpha: float, target: IntervalTarget) -> tuple[Floats, Floats]:
        average, z = self.average, quantile(alpha)
        if self.few(alpha, target).any():
            half = _bernstein(average.weights, average.counters, alpha, self.n)
            return average.points, half
        added = average.covers.variance(average.weights) / self.n
        if not target.sampled:
            return average.points, z * np.sqrt((self.decoded.noise + added) / self.n)
        variance = average.mean_square - average.points**2
        spread = np.maximum(variance, self.decoded.least_noise + added)
        reach = average.weights.min(axis=1), average.weights.max(axis=1)
        low, high = agresti_coull(average.points, spread, self.n, reach, z)
        return (low + high) / 2, (high - low) / 2

    def few(self, alpha: Alpha, target: IntervalTarget) -> Bools:
        """Whether reports are few; of a cohort, errors: a sample's interval makes up for those."""
        least = float(FEWEST)
        if not target.sampled:
            settled = SETTLED * self.decoded.kurtosis * float(np.max(enough(alpha))) / ENOUGH
            least = max(FEWEST, settled)
        return np.array([self.n < least])

    def poisoned(self, fakes: float) -> Ends:
        low, high = self.average.poisoned(fakes)
        return self._scaled(low), self._scaled(high)

    def _scaled(self, figure: Floats) -> Floats:
        return self.low + self.width * figure
