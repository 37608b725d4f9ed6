"""The mean of a distribution as an estimator: an average of one weight per report.

So it has a poisoning band, and two of them can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilcount_shared.domain import Number

from .confidence_intervals import Bools, Counts, Ends, Floats
from .estimator import IntervalTarget, honest_range
from .linear_estimators import MANY, weighted_figures


@dataclass(frozen=True, slots=True, eq=False)
class WeightedEstimator:
    """One figure in [0, 1], from low to low + span in its own units.

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
        """Return the estimator of a mean, by what each message says of a number and its square."""
        fixed = float((squares @ counters)[0]) / int(counters.sum())
        return cls(counters, weights, fixed, float(domain.low), float(domain.high - domain.low))

    @property
    def n(self) -> int:
        """How many reports."""
        return int(self.counters.sum())

    @property
    def points(self) -> Floats:
        """The unbiased figure."""
        return self._scaled(self.weights @ self.counters / self.n)

    @property
    def families(self) -> int:
        """One figure."""
        return 1

    def error(self, target: IntervalTarget) -> Floats:
        """Return the standard error."""
        share = self.counters / self.n
        square = self.weights**2 @ share
        away = (self.weights @ share) ** 2 if target.sampled else self.fixed
        return self.width * np.sqrt(np.maximum(square - away, 0) / self.n)

    def interval(self, alpha: float, target: IntervalTarget) -> Ends:
        """Return the interval that the estimate has."""
        fixed = None if target.sampled else np.array([self.fixed])
        found = weighted_figures(self.weights, self.counters, alpha, fixed)
        return self._scaled(found.low), self._scaled(found.high)

    def few(self, _alpha: float, target: IntervalTarget) -> Bools:
        """Whether one report still moves the figure by too much for the normal."""
        mean = self.weights @ self.counters / self.n
        farthest = np.abs(self.weights - mean[:, np.newaxis]).max(axis=1)
        variance = (self.error(target) / self.width) ** 2 * self.n
        few: Bools = self.n * variance < MANY * farthest**2
        return few

    def poisoned(self, fakes: float) -> Ends:
        """Return what honest answers may say: a report says one of the weights."""
        least, most = self._scaled(self.weights.min(axis=1)), self._scaled(self.weights.max(axis=1))
        return honest_range(self.points, (least, most), fakes)

    def _scaled(self, figure: Floats) -> Floats:
        return self.low + self.width * figure
