"""The share whose state is true after some periods, from a trend's reports.

It is the least-squares sum of the net changes in all intervals that are over
[estimation/trend_weights.py]. Different levels are different people, and the signs of one person
are fair wherever nothing changed, so each interval is a mean of signs that are nearly independent
of those of others. Whoever is of a level is drawn, so an interval covers the share among all
people, and needs no less for those who reported.

A trend smoothed over time: least squares in which each step of the share has a price.

The share is a random walk, as in `estimation.smoothing`, and its steps are as large as the
likelihood does not reject. All intervals are weighted alike, as in `trend_weights`, so that fakes
cannot move their weights. Bands hold over all periods together: right at a sudden change they may
miss more often than not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from .confidence_intervals import Alpha, Bools, Counts, Ends, Floats, quantile
from .estimator import IntervalTarget, enough
from .smoothing import STEPS, UNREJECTED
from .trend_weights import interval_levels, share_weights

STILL = 1e-6  # in variances of an interval: a step of a share that does not move


@dataclass(frozen=True, slots=True, eq=False)
class SmoothWeights:
    """The weights of all intervals in the share after each period, a row each, and its errors."""

    weights: Floats
    errors: Floats

    @classmethod
    def fit(cls, periods: int, changes: Floats, variance: float, reported: Bools) -> Self:
        """Fit the net changes of intervals with reports, each of about this variance.

        One of them holds the first period: without any, no share has an estimate.
        """
        members = _members(periods)[reported]
        normal, moved = members.T @ members, members.T @ changes[reported]
        step = _largest_step(normal, moved / np.sqrt(variance))
        prices = np.full(periods, 1 / step)
        prices[0] = 0  # of the first share any is as likely
        covariance = np.linalg.inv(normal + np.diag(prices))
        sums = covariance.cumsum(axis=0)
        weights = np.zeros((periods, len(reported)))
        weights[:, reported] = sums @ members.T
        return cls(weights, np.sqrt(variance * np.diag(sums.cumsum(axis=1))))


def _members(periods: int) -> Floats:
    """Return which periods each interval has, the shortest first."""
    rows = [
        np.repeat(np.eye(periods >> level), 1 << level, axis=1)
        for level in range(periods.bit_length())
    ]
    return np.vstack([np.pad(row, ((0, 0), (0, periods - row.shape[1]))) for row in rows])


def _largest_step(normal: Floats, moved: Floats) -> float:
    """Return the largest variance of a step that is not rejected; the first share is unknown."""
    first = normal[0, 0]
    others = normal[1:, 1:] - np.outer(normal[0, 1:], normal[0, 1:]) / first
    eigenvalues, vectors = np.linalg.eigh(others)
    along = vectors.T @ (moved[1:] - normal[0, 1:] * moved[0] / first)
    steps = np.maximum(STEPS, STILL)
    prices = np.maximum(eigenvalues, 0.0) + 1 / steps[:, np.newaxis]
    spread = np.log(prices * steps[:, np.newaxis])
    likelihood = (along**2 / prices - spread).sum(axis=1) / 2
    return float(steps[likelihood >= likelihood.max() - UNREJECTED].max())


ALL_FAKE = 0.99  # of an interval's reports


@dataclass(frozen=True, eq=False)
class TrendCounts:
    """The reports of all intervals within the first periods, the shortest intervals first."""

    gap: float  # the expectation of a sign
    levels: int  # that are drawn, also those without an interval in these periods
    periods: int
    rises: Counts  # reports of a rise
    reports: Counts

    def after(self, period: int) -> TrendEstimator | None:
        """Return the shares after so many periods; None: too few intervals have reports."""
        weights = share_weights(self.periods, period, (self.reports > 0).tobytes())
        if weights is None:
            return None
        used = np.flatnonzero(weights)
        level, reports = interval_levels(self.periods)[used], self.reports[used]
        return TrendEstimator(self, weights[used], level, self.rises[used], reports)

    def smoothed_after(self, period: int) -> TrendEstimator:
        """Return the shares after so many periods, of which `after` has an estimate, smoothed."""
        used, error = np.flatnonzero(self.reports), float(self._smooth.errors[period - 1])
        weights, level = self._smooth.weights[period - 1, used], interval_levels(self.periods)[used]
        rises, reports = self.rises[used], self.reports[used]
        return SmoothTrendEstimator(self, weights, level, rises, reports, error)

    @cached_property
    def _smooth(self) -> SmoothWeights:
        reported = self.reports > 0
        changes = (2 * self.rises / np.maximum(self.reports, 1) - 1) / self.gap
        variance = 1 / (np.median(self.reports[reported]) * self.gap**2)
        return SmoothWeights.fit(self.periods, changes, float(variance), reported)

    @cached_property
    def people(self) -> Counts:
        """How many people of each level report: the median of its intervals with reports."""
        starts = np.flatnonzero(np.diff(interval_levels(self.periods))) + 1
        rows = [np.sort(row[row > 0]) for row in np.split(self.reports, starts)]
        return np.array([row[len(row) // 2] for row in rows if len(row)])


@dataclass(frozen=True, eq=False)
class TrendEstimator:
    """The shares of false and of true after some periods."""

    counts: TrendCounts
    weights: Floats  # of each interval with any
    level: Counts
    rises: Counts
    reports: Counts

    @property
    def n(self) -> int:
        """How many people report."""
        return int(self.counts.people.sum())

    @property
    def points(self) -> Floats:
        share = float(self.weights @ self._means) / self.counts.gap
        return np.array([1 - share, share])

    @property
    def families(self) -> int:
        return 1

    @cached_property
    def _means(self) -> Floats:
        means: Floats = 2 * self.rises / self.reports - 1
        return means

    def error(self, target: IntervalTarget) -> Floats:  # noqa: ARG002 - the same for both
        variances = (1 - self._means**2) / self.reports
        return np.full(2, np.sqrt(self.weights**2 @ variances) / self.counts.gap)

    def interval(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        """Return normal intervals; where an interval has few reports, one that holds at any n."""
        half = quantile(alpha) * self.error(target)
        if self.few(alpha, target).any():  # Hoeffding's inequality, of signs
            spread = self.weights**2 @ (1 / self.reports)
            half = np.full(2, np.sqrt(2 * np.log(2 / alpha) * spread) / self.counts.gap)
        return self.points - half, self.points + half

    def few(self, alpha: Alpha, target: IntervalTarget) -> Bools:  # noqa: ARG002 - the same for both
        rarer = np.minimum(self.rises, self.reports - self.rises)
        return np.full(2, bool((rarer < enough(alpha)).any()))

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest shares, if this share of the devices is fake.

        Whoever fakes a device chooses its level, and in each interval the sign that moves the share
        most. The move is a convex function of a level's fakes, so it is largest if all choose one.
        """
        people = self.counts.people
        unseen = self.counts.levels - len(people)  # of levels without reports so far
        devices = people.sum() + unseen * people.max()
        fake = np.minimum(fakes * devices, ALL_FAKE * self.reports)
        moves = []
        for sign in (-1, 1):
            signs, means = sign * np.sign(self.weights), self._means
            honest = (self.reports * means + signs * fake) / (self.reports - fake)
            moved = self.weights * (np.clip(honest, -1, 1) - means) / self.counts.gap
            moves.append(sign * (sign * np.bincount(self.level, moved)).max())
        low, high = self.points[1] + np.array(moves)
        return np.array([1 - high, low]), np.array([1 - low, high])


@dataclass(frozen=True, eq=False)
class SmoothTrendEstimator(TrendEstimator):
    """Shares that also use how the others move; intervals hold over all periods together."""

    stated_error: float

    def error(self, target: IntervalTarget) -> Floats:  # noqa: ARG002 - the same for both
        return np.full(2, self.stated_error)

    def few(self, alpha: Alpha, target: IntervalTarget) -> Bools:  # noqa: ARG002 - the walk is normal
        return np.zeros(2, np.bool_)
