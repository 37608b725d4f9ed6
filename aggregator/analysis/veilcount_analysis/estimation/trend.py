"""The share whose state is true after some periods, from a trend's reports.

It is the sum of the net changes in the intervals that cover these periods, at most one of each
level. Different levels are different people, so the errors of a sum's terms are independent, and
each term is a mean of independent signs. Whoever is of a level is drawn, so an interval covers the
share among all people, and needs no less for those who reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .confidence_intervals import Alpha, Bools, Counts, Ends, Floats, quantile
from .estimator import IntervalTarget, enough


@dataclass(frozen=True, slots=True, eq=False)
class TrendEstimator:
    """The shares of false and of true after some periods."""

    gap: float  # the expectation of a sign
    rises: Counts  # reports of a rise, in each interval that covers the periods
    reports: Counts  # all reports of each, at least one

    @property
    def n(self) -> int:
        return int(self.reports.sum())

    @property
    def points(self) -> Floats:
        share = float(self._means.sum()) / self.gap
        return np.array([1 - share, share])

    @property
    def families(self) -> int:
        return 1

    @property
    def _means(self) -> Floats:
        means: Floats = 2 * self.rises / self.reports - 1
        return means

    def error(self, target: IntervalTarget) -> Floats:  # noqa: ARG002 - the same for both
        variances = (1 - self._means**2) / self.reports
        return np.full(2, np.sqrt(variances.sum()) / self.gap)

    def interval(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        """Return normal intervals; where an interval has few reports, one that holds at any n."""
        half = quantile(alpha) * self.error(target)
        if self.few(alpha, target).any():  # Hoeffding's inequality, of signs
            half = np.full(2, np.sqrt(2 * np.log(2 / alpha) * (1 / self.reports).sum()) / self.gap)
        return self.points - half, self.points + half

    def few(self, alpha: Alpha, target: IntervalTarget) -> Bools:  # noqa: ARG002 - the same for both
        rarer = np.minimum(self.rises, self.reports - self.rises)
        return np.full(2, bool((rarer < enough(alpha)).any()))

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest shares: all fakes are of the interval they move most.

        Whoever fakes a report chooses its level as well.
        """
        fake, means = fakes * self.n, self._means
        honest = np.maximum(self.reports - fake, 1.0)
        low, high = (
            np.clip((self.reports * means + moved) / honest, -1, 1) - means
            for moved in (-fake, fake)
        )
        share = self.points[1] + np.array([low.min(), high.max()]) / self.gap
        return np.array([1 - share[1], share[0]]), np.array([1 - share[0], share[1]])
