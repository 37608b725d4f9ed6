"""Ratio estimates: shares of a part, of those who answered or have another value.

Both parts of such a ratio are estimated from the same reports. Fieller's interval holds every ratio
rho at which numerator - rho denominator is within its own error of 0 [Fie54]; where counts are
small, both get an interval with half the error probability, and what is possible within the two is
the ratio's. A denominator that may be 0 leaves every ratio possible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .confidence_intervals import Alpha, Bools, Counts, Ends, Floats, quantile
from .estimator import Estimator, IntervalTarget, enough
from .response_distribution import ResponseDistribution


@dataclass(frozen=True, slots=True, eq=False)
class RatioEstimator:
    """Parts over a whole, which is one group of inputs or, inverted, all others."""

    parts: Estimator
    whole: Estimator
    inverted: bool
    gap: float
    covariances: dict[IntervalTarget, Floats]

    @property
    def n(self) -> int:
        """All reports, those outside the whole included."""
        return self.parts.n

    @property
    def families(self) -> int:
        return self.parts.families

    @property
    def points(self) -> Floats:
        """The ratios; of a whole that seems to be nothing, 0 or 1."""
        whole = self._whole
        if whole <= 0:
            return np.where(self.parts.points > 0, 1.0, 0.0)
        return self.parts.points / whole

    def error(self, target: IntervalTarget) -> Floats:
        """Return the standard errors, to first order."""
        part, both, whole = self._variances(target)
        ratio = self.points
        variance = part - 2 * ratio * both + ratio**2 * whole
        return np.sqrt(np.maximum(variance, 0.0)) / max(self._whole, 1 / self.n)

    def interval(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        """Return Fieller's intervals, or for small counts those of the two parts together."""
        few = self.few(alpha, target)
        ends = [
            np.where(few, two, one)
            for one, two in zip(
                self._fieller(alpha, target), self.quotient(alpha, target), strict=True
            )
        ]
        return np.minimum(ends[0], self.points), np.maximum(ends[1], self.points)

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest ratios, if the fakes work on both parts at once."""
        low, high = (np.clip(end, 0, 1) for end in self.parts.poisoned(fakes))
        under, over = self._turned(self.whole.poisoned(fakes))
        return _divided(low, high, under, over)

    @property
    def _whole(self) -> float:
        share = float(self.whole.points[0])
        return 1 - share if self.inverted else share

    def _variances(self, target: IntervalTarget) -> tuple[Floats, Floats, float]:
        whole = float(self.whole.error(target)[0]) ** 2
        return self.parts.error(target) ** 2, self.covariances[target], whole

    def few(self, alpha: Alpha, target: IntervalTarget) -> Bools:
        """Whether what makes up one of the two variances is too small a count for the normal."""
        part, _, whole = self._variances(target)
        counts = np.minimum(part, whole) * (self.n * self.gap) ** 2
        return counts < enough(alpha)

    def _fieller(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        part, both, whole = self._variances(target)
        squared, over = quantile(alpha) ** 2, self._whole
        a = over**2 - squared * whole
        bounded = (over > 0) & (a > 0)
        a = np.where(bounded, a, 1.0)
        b = self.parts.points * over - squared * both
        c = self.parts.points**2 - squared * part
        root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
        return np.where(bounded, (b - root) / a, 0.0), np.where(bounded, (b + root) / a, 1.0)

    def quotient(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        """Return the ratios that are possible within the intervals of both parts."""
        low, high = (np.clip(end, 0, 1) for end in self.parts.interval(alpha / 2, target))
        under, over = self._turned(self.whole.interval(alpha / 2, target))
        return _divided(low, high, under, over)

    def _turned(self, ends: Ends) -> Ends:
        """Return the ends of the whole, within what a share can be."""
        low, high = (np.clip(end, 0, 1) for end in ends)
        return (1 - high, 1 - low) if self.inverted else (low, high)


def _divided(low: Floats, high: Floats, under: Floats, over: Floats) -> Ends:
    """Return the least and the greatest ratio, at most 1 since a part is no more than its whole."""
    tiny = np.finfo(np.float64).tiny
    return np.minimum(low / np.maximum(over, tiny), 1.0), np.minimum(
        high / np.maximum(under, tiny), 1.0
    )


def ratios(
    response: ResponseDistribution,
    joint: Floats,
    groups: Counts | tuple[Counts, ...],
    whole: Counts,
    *,
    parts: Estimator,
    part_of: Estimator,
    inverted: bool = False,
    of_covers: Floats | None = None,
) -> RatioEstimator:
    """Return the estimator of groups (or single places) as shares of a whole, or of its rest.

    `joint` is for each input the mean over reports of [supported] times how many of the whole.
    Each group lies in the whole; inverted, none does. The covariance of two shares is a sample's:
    that of the noise and that of the answers, which a cohort does not have. For a part of a whole
    the latter is part (1 - whole), for two apart -part whole. `of_covers` is for each input what
    covers add to the covariance of its support and the whole's, for each of the n reports.
    """
    n, share = parts.n, float(part_of.points[0])
    together = _over(groups, joint)
    mean_parts = _over(groups, np.ones_like(joint)) * response.Q + parts.points * response.gap
    mean_whole = len(whole) * response.Q + share * response.gap
    sampled = (together - mean_parts * mean_whole) / response.gap**2
    if of_covers is not None:
        sampled += _over(groups, of_covers) / response.gap**2
    answered = parts.points * ((0 if inverted else 1) - share)
    sign = -1 / n if inverted else 1 / n
    both = {
        IntervalTarget.POPULATION: sign * sampled,
        IntervalTarget.COHORT: sign * (sampled - answered),
    }
    return RatioEstimator(parts, part_of, inverted, response.gap, both)


def _over(groups: Counts | tuple[Counts, ...], values: Floats) -> Floats:
    """Return the sums of some values over groups of places, or the values at single places."""
    if isinstance(groups, np.ndarray):
        return values[groups]
    return np.array([float(values[group].sum()) for group in groups])
