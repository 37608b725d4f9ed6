"""What follows from the moments of several numbers: spread, correlation, linear regression.

Every moment is the mean of other devices' reports, so the estimates of the moments are independent,
and a figure that is a smooth function of them has the variance sum (df/dm)^2 Var(m) [delta method].
A function is differentiated by central differences, whose steps are a part of each moment's error.

Where a variance is not far above 0 compared with its own error, no quotient by it is stated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from .confidence_intervals import Bools, Counts, Floats, quantile

FAR = 3.0  # standard errors above 0 of a variance that may be divided by
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
    n: int
    points: Floats
    variances: Floats  # of the estimates

    @classmethod
    def from_levels(cls, features: int, rows: Counts, levels: Floats) -> MomentMeans:
        """Return the means of each row's levels, and how far they may be off."""
        sizes = np.maximum(rows.sum(axis=1), 1)
        points = rows @ levels / sizes
        spread = rows @ levels**2 / sizes - points**2
        return cls(features, int(rows.sum()), points, spread / sizes)

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
        return Numbers(means, seconds - np.outer(means, means))

    def figures(self, function: Function, level: float) -> Figures:
        """Return figures that are functions of the numbers, with their intervals."""
        points, variance = function(self.numbers()), self.spread_of(function)
        half = quantile(1 - level) * np.sqrt(variance)
        return Figures(points, points - half, points + half)

    def spread_of(self, function: Function) -> Floats:
        """Return the variances of functions of the numbers."""
        errors = np.sqrt(self.variances)
        total: Floats = np.zeros(1)
        for place, error in enumerate(errors):
            step = np.zeros(len(errors))
            step[place] = STEP * error
            above, below = (
                function(replace(self, points=self.points + sign * step).numbers())
                for sign in (1, -1)
            )
            total = total + ((above - below) / (2 * STEP)) ** 2
        return total


def means(numbers: Numbers) -> Floats:
    """Return the mean of each number."""
    return numbers.means


def variances(numbers: Numbers) -> Floats:
    """Return the variance of each number."""
    return numbers.variances


def deviations(numbers: Numbers) -> Floats:
    """Return the standard deviation of each number; NaN where the variance is estimated below 0."""
    return np.sqrt(np.where(numbers.variances > 0, numbers.variances, np.nan))


def covariances(numbers: Numbers) -> Floats:
    """Return the covariance of each two different numbers, in the order of pairs."""
    return numbers.covariances[np.triu_indices(len(numbers.means), 1)]


def correlations(numbers: Numbers) -> Floats:
    """Return the correlation of each two different numbers, in the order of pairs."""
    spread = deviations(numbers)
    return covariances(Numbers(numbers.means, numbers.covariances / np.outer(spread, spread)))


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


def least_spread(chosen: Floats) -> Function:
    """Return the function for the least variance of any direction of some numbers."""

    def eigenvalue(numbers: Numbers) -> Floats:
        return np.linalg.eigvalsh(numbers.covariances[chosen][:, chosen])[:1]

    return eigenvalue


def is_far_from_zero(found: MomentMeans, function: Function) -> Bools:
    """Return which variances are so far above 0 that they may be divided by."""
    far: Bools = function(found.numbers()) > FAR * np.sqrt(found.spread_of(function))
    return far
