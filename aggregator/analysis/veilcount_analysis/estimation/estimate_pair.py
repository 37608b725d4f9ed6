"""Two estimates of the same figures: the interval of their difference, and its p-value.

One interval, put together from the distances of both figures to their own ends at the same error
probability [ZD08]: exact ends where counts are small, so it holds there too. The p-value is where
this interval touches 0, so the two never disagree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..scipy_modules import special
from .confidence_intervals import Alpha, Ends, Floats, quantile
from .confidence_sequences import AnytimeEstimator, LookCount, difference, p_of_difference
from .estimator import RARE, Estimator, IntervalTarget
from .roots import last_positive

FARTHEST = 8.0  # of z: p below 1e-15 is not resolved
#: below it counts must be larger for the normal, so that intervals jump there
BELOW_RARE = RARE * (1 - 1e-12)


@dataclass(frozen=True, slots=True, eq=False)
class EstimatePair:
    """Two estimates of the same figures, and the worst correlation of their errors; None: none."""

    one: Estimator
    two: Estimator
    target: IntervalTarget
    correlation: Floats | None
    looks: LookCount

    @property
    def difference(self) -> Floats:
        """First less second."""
        return self.one.points - self.two.points

    @property
    def error(self) -> Floats:
        """The standard error of the difference."""
        return self.joined(self.one.error(self.target), self.two.error(self.target))

    @property
    def joint(self) -> tuple[AnytimeEstimator, AnytimeEstimator] | None:
        """Two independent confidence sequences; None: something else."""
        one, two = self.one, self.two
        if not (isinstance(one, AnytimeEstimator) and isinstance(two, AnytimeEstimator)):
            return None
        return (one, two) if self.correlation is None and one.single and two.single else None

    def interval(self, alpha: Alpha) -> Ends:
        """Return the difference's interval; for every look, by other means.

        There it is the two sides' joint martingale, or what is possible within their intervals,
        each with half the error probability, whatever the correlation.
        """
        if self.looks is LookCount.ONE:
            return self._joined_ends(*self._ends(alpha))
        if self.joint is not None:
            return difference(*self.joint, float(np.max(alpha)), self.target)
        (low_one, high_one), (low_two, high_two) = self._ends(alpha / 2)
        return low_one - high_two, high_one - low_two

    def gap(self, alpha: Alpha) -> Floats:
        """Return how far 0 lies outside the interval; at most 0: the interval includes it."""
        low, high = self.interval(alpha)
        return np.where(self.difference >= 0, low, -high)

    def p_value(self, alpha: float) -> Floats:
        """Return the error probability at which each interval touches 0.

        At `alpha` it agrees with the interval to the last digit.
        """
        if self.joint is not None:
            return p_of_difference(*self.joint, alpha, self.target)
        p, excluded = 2 * special.ndtr(-self._touching()), self.gap(alpha) > 0
        return np.where(excluded, np.minimum(p, alpha), np.maximum(p, np.nextafter(alpha, 1)))

    def _touching(self) -> Floats:
        """Return the z at which each interval touches 0, the intervals widening with z.

        They widen steadily but for a jump at RARE, before which a row's search ends or begins.
        """
        size, rare = np.abs(self.difference), quantile(RARE)
        at_rare = self.gap(RARE)
        passed = at_rare > 0
        if not passed.any():
            past_rare, last = at_rare, at_rare
        else:
            past_rare = self.gap(np.where(passed, BELOW_RARE, 1.0))
            passed &= past_rare > 0
            last = self.gap(np.where(passed, 2 * special.ndtr(-FARTHEST), 1.0))
        low, at_low = np.where(passed, rare, 0.0), np.where(passed, past_rare, size)
        high, at_high = np.where(passed, FARTHEST, rare), np.where(passed, last, at_rare)
        high = np.where((at_high > 0) | (size == 0), low, high)  # settled
        touching = last_positive(
            lambda z: self.gap(2 * special.ndtr(-z)), low, high, (at_low, at_high)
        )
        touching = np.where((at_rare > 0) & ~passed, rare, touching)
        return np.where(passed & (last > 0), FARTHEST, touching)

    def _joined_ends(self, first: Ends, second: Ends) -> Ends:
        one, two = self.one.points, self.two.points
        below = self.joined(one - first[0], second[1] - two)
        above = self.joined(first[1] - one, two - second[0])
        return self.difference - below, self.difference + above

    def joined(self, one: Floats, two: Floats) -> Floats:
        """Return the length of the sum of two errors with this correlation."""
        first, second = np.maximum(one, 0.0), np.maximum(two, 0.0)
        correlation = 0.0 if self.correlation is None else self.correlation
        length: Floats = np.sqrt(first**2 + second**2 + 2 * first * second * correlation)
        return length

    def _ends(self, alpha: Alpha) -> tuple[Ends, Ends]:
        return self.one.interval(alpha, self.target), self.two.interval(alpha, self.target)
