"""What follows from the moments of several numbers: spread, correlation, linear regression.

Every moment is the mean of other devices' reports, so the estimates of the moments are independent,
and a figure that is a smooth function of them has the variance sum (df/dm)^2 Var(m) [delta method].
A function is differentiated by central differences, whose steps are a part of each moment's error.

Intervals of quotients are Fieller's: they hold every value at which numerator - value x denominator
is within its own error of 0 [Fie54]. Where the denominator may be 0 every value is possible, and no
figure is stated. So a stated interval covers as well where the denominator is barely known, which
one chosen by the size of its estimate does not. A coefficient of a regression is such a quotient,
with a score that is orthogonal to the other coefficients: their errors count in the second order.

Covers of a shuffler draw their moment as devices do, so that in each moment's reports a person's is
as frequent as in all of them, and a cover decodes to 0 on average. How many persons reported a
moment is not known; the spread of its reports includes what that varies by, and does so for each
moment as if the others' were independent. All together are known exactly, so it is a little too
wide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from .confidence_intervals import Bools, Counts, Floats, quantile

STEP = 0.1  # of a moment's standard error

Function = Callable[["Numbers"], Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Means and covariances of several numbers from -1 to 1."""

    means: Floats
    covariances: Floats

    @property
    def variances(self) -> Floats:
        """The variance of each."""
        return np.diagonal(self.covariances)


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """Figures with their intervals; NaN where none can be stated."""

    points: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, eq=False)
class MomentMeans:
    """The estimates of the moments: of each number alone, then of each product of two."""

    features: int
    reports: Floats  # of each moment; expected ones need not be whole
    points: Floats
    variances: Floats  # of the estimates
    level_reach: tuple[float, float] = (-1.0, 1.0)  # least and most that a level decodes to

    @classmethod
    def from_levels(
        cls, features: int, rows: Counts, levels: Floats, covers: int = 0
    ) -> MomentMeans:
        """Return the means of each row's levels, and how far they may be off.

        Levels are of [-1, 1], and a square is reported on [0, 1].
        """
        sizes, reports = np.maximum(rows.sum(axis=1), 1), int(rows.sum())
        part = 1 - covers / max(reports, 1)  # of the reports, those of persons
        received = rows @ levels / sizes
        spread = rows @ levels**2 / sizes - received**2
        reach = float(levels.min()), float(levels.max())
        scale, middle = _scales(features)
        points, variances = scale * received / part + middle, scale**2 * spread / sizes / part**2
        return cls(features, sizes * part, points, variances, reach)

    @classmethod
    def evenly_spread(
        cls, features: int, n: int, noise: float, correlation: float = 0.0
    ) -> MomentMeans:
        """Return what n reports would find of numbers that are spread evenly over [-1, 1].

        `noise`: n times the noise variance of a moment of [-1, 1]. Every two numbers are equal with
        a probability, which is their correlation, else independent. E x^2 = 1/3, E x^4 = 1/5.
        """
        pairs = list(combinations_with_replacement(range(features), 2))
        equal = [1.0 if one == two else correlation for one, two in pairs]
        points = [0.0] * features + [product / 3 for product in equal]
        squares = [1 / 3] * features + [product / 5 + (1 - product) / 9 for product in equal]
        spread = np.array(squares) - np.array(points) ** 2
        reports = np.full(len(points), n / len(points))
        variances = (noise * _scales(features)[0] ** 2 + len(points) * spread) / n
        return cls(features, reports, np.array(points), variances)

    @property
    def n(self) -> int:
        """How many reports there are."""
        return round(float(self.reports.sum()))

    @property
    def is_square(self) -> Bools:
        """Which moments are those of a number's square."""
        return _squares(self.features)

    @property
    def reach(self) -> Floats:
        """The least and the most that one report of each moment decodes to."""
        scale, middle = _scales(self.features)
        return np.outer(self.level_reach, scale) + middle

    @property
    def complete(self) -> bool:
        """Whether every moment was reported more than once."""
        return bool((self.variances > 0).all())

    def numbers(self) -> Numbers:
        """Return means and covariances."""
        means, seconds = self.points[: self.features], np.empty((self.features, self.features))
        pairs = combinations_with_replacement(range(self.features), 2)
        for (one, two), product in zip(pairs, self.points[self.features :], strict=True):
            seconds[one, two] = seconds[two, one] = product
        # the square of an estimated mean is too large by its variance
        own = np.diag(self.variances[: self.features])
        return Numbers(means, seconds - np.outer(means, means) + own)

    def figures(self, function: Function, level: float) -> Figures:
        """Return figures that are functions of the numbers, with their intervals."""
        points, variance = function(self.numbers()), self.spread_of(function)
        half = quantile(1 - level) * np.sqrt(variance)
        return Figures(points, points - half, points + half)

    def spread_of(self, function: Function) -> Floats:
        """Return the variances of functions of the numbers."""
        spread: Floats = (self._slopes(function) ** 2).sum(axis=0)
        return spread

    def deviations(self, level: float) -> Figures:
        """Return the standard deviations: the roots of the variances and of their ends."""
        figures = self.figures(variances, level)
        points, low = (np.sqrt(np.maximum(values, 0.0)) for values in (figures.points, figures.low))
        return Figures(points, low, np.sqrt(np.where(figures.high > 0, figures.high, np.nan)))

    def correlations(self, level: float) -> Figures:
        """Return the correlation of each two different numbers, in the order of pairs."""
        held = self.numbers()
        spread = _positive_deviations(held)
        one, two = np.triu_indices(self.features, 1)
        points = correlations(held)

        def scale(numbers: Numbers) -> Floats:
            parts = numbers.variances / held.variances  # their geometric mean, to first order
            average: Floats = (parts[one] + parts[two]) / 2
            return average

        def score(numbers: Numbers) -> Floats:
            scaled: Floats = covariances(numbers) / (spread[one] * spread[two])
            off: Floats = scaled - points * scale(numbers)
            return off

        quotients = self._quotients(points, score, scale, level)
        return Figures(
            *(np.clip(bound, -1, 1) for bound in (quotients.points, quotients.low, quotients.high))
        )

    def coefficients(self, target: int, level: float) -> Figures:
        """Return the coefficients of a linear regression of one number on all others."""
        held = self.numbers()
        others = np.delete(np.arange(self.features), target)
        points = regression(target)(held)[:-1]
        residual = np.eye(self.features)[target]
        residual[others] = -points
        apart = np.stack([_apart(held.covariances, others, other) for other in others.tolist()])

        def score(numbers: Numbers) -> Floats:
            scores: Floats = apart @ numbers.covariances @ residual
            return scores

        def scale(numbers: Numbers) -> Floats:
            quadratic_forms: Floats = np.einsum("ij,jk,ik->i", apart, numbers.covariances, apart)
            return quadratic_forms

        return self._quotients(points, score, scale, level)

    def _quotients(self, points: Floats, score: Function, scale: Function, level: float) -> Figures:
        """Return Fieller's intervals: all t at which score - t scale is within its error of 0.

        The score is 0 at the points, and t is counted from them.
        """
        z, one, two = quantile(1 - level), self._slopes(score), self._slopes(scale)
        noise, both, own = (
            z * z * (left * right).sum(axis=0)
            for left, right in ((one, one), (one, two), (two, two))
        )
        size = scale(self.numbers())
        curvature = np.where(size > 0, size**2 - own, np.nan)
        bounded = np.where(curvature > 0, curvature, np.nan)
        root = np.sqrt(both**2 + bounded * noise)
        return Figures(points, points - (both + root) / bounded, points + (root - both) / bounded)

    def _slopes(self, function: Function) -> Floats:
        """Return by how much each function changes with a standard error of each moment."""
        rows = []
        for place, error in enumerate(np.sqrt(self.variances)):
            step = np.zeros(len(self.points))
            step[place] = STEP * error
            above, below = (
                function(replace(self, points=self.points + sign * step).numbers())
                for sign in (1, -1)
            )
            rows.append((above - below) / (2 * STEP))
        return np.array(rows)


def _squares(features: int) -> Bools:
    pairs = combinations_with_replacement(range(features), 2)
    return np.array([False] * features + [one == two for one, two in pairs])


def _scales(features: int) -> tuple[Floats, Floats]:
    """Return the scale and the middle of each moment, which levels of [-1, 1] are turned into."""
    squares = _squares(features)
    return np.where(squares, 0.5, 1.0), np.where(squares, 0.5, 0.0)


def _apart(covariances: Floats, others: Counts, one: int) -> Floats:
    """Return the weights of one number less its regression on the rest of the others.

    NaN where the rest is estimated to have a direction of negative variance.
    """
    rest = others[others != one]
    inside = covariances[np.ix_(rest, rest)]
    weights: Floats = np.eye(len(covariances))[one]
    positive = not len(rest) or np.linalg.eigvalsh(inside)[0] > 0
    weights[rest] = -np.linalg.solve(inside, covariances[rest, one]) if positive else np.nan
    return weights


def means(numbers: Numbers) -> Floats:
    """Return the mean of each number."""
    return numbers.means


def variances(numbers: Numbers) -> Floats:
    """Return the variance of each number."""
    return numbers.variances


def covariances(numbers: Numbers) -> Floats:
    """Return the covariance of each two different numbers, in the order of pairs."""
    return numbers.covariances[np.triu_indices(len(numbers.means), 1)]


def correlations(numbers: Numbers) -> Floats:
    """Return the correlation of each two different numbers; NaN where one does not vary."""
    spread = _positive_deviations(numbers)
    one, two = np.triu_indices(len(spread), 1)
    quotients: Floats = covariances(numbers) / (spread[one] * spread[two])
    return quotients


def _positive_deviations(numbers: Numbers) -> Floats:
    return np.sqrt(np.where(numbers.variances > 0, numbers.variances, np.nan))


def regression(target: int) -> Function:
    """Return the function for the coefficients of one number on all others, and the intercept."""

    def coefficients(numbers: Numbers) -> Floats:
        others = np.arange(len(numbers.means)) != target
        inside, towards = (
            numbers.covariances[others][:, others],
            numbers.covariances[others, target],
        )
        slopes = np.linalg.lstsq(inside, towards, rcond=None)[0]
        intercept = numbers.means[target] - slopes @ numbers.means[others]
        return np.append(slopes, intercept)

    return coefficients
