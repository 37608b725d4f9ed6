"""Figures about numbers as evidence: averages of one weight a report.

So the mean of a distribution has a poisoning band, and two of them can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import DistributionMechanism, RangeTree
from veilcount_shared.mechanisms.square_wave import BUCKETS

from ..estimation.cdf import middles
from ..estimation.confidence_intervals import Bools, Counts, Ends, Floats
from ..estimation.estimator import IntervalTarget, honest
from ..estimation.linear_estimators import MANY, read
from ..estimation.range_queries import weights_of
from ..estimation.square_wave_em import wave_of


@dataclass(frozen=True, slots=True, eq=False)
class WeightedEstimator:
    """One figure in [0, 1], from low to low + span in the units it is told in.

    `fixed` is the average squared contribution of a number to the figure: no noise, so none of a
    cohort's.
    """

    counters: Counts
    weights: Floats  # one row
    fixed: float
    low: float = 0.0
    span: float = 1.0

    @property
    def n(self) -> int:
        """How many reports."""
        return int(self.counters.sum())

    @property
    def points(self) -> Floats:
        """The unbiased figure."""
        return self._told(self.weights @ self.counters / self.n)

    @property
    def families(self) -> int:
        """One figure."""
        return 1

    def error(self, target: IntervalTarget) -> Floats:
        """Return the standard error."""
        share = self.counters / self.n
        square = self.weights**2 @ share
        away = (self.weights @ share) ** 2 if target.sampled else self.fixed
        return self.span * np.sqrt(np.maximum(square - away, 0) / self.n)

    def interval(self, alpha: float, target: IntervalTarget) -> Ends:
        """Return the interval that the estimate has."""
        fixed = None if target.sampled else np.array([self.fixed])
        found = read(self.weights, self.counters, alpha, fixed)
        return self._told(found.low), self._told(found.high)

    def few(self, _alpha: float, target: IntervalTarget) -> Bools:
        """Whether one report still moves the figure by too much for the normal."""
        mean = self.weights @ self.counters / self.n
        farthest = np.abs(self.weights - mean[:, np.newaxis]).max(axis=1)
        variance = (self.error(target) / self.span) ** 2 * self.n
        few: Bools = self.n * variance < MANY * farthest**2
        return few

    def poisoned(self, fakes: float) -> Ends:
        """Return what honest answers may say: a report says one of the weights."""
        least, most = self._told(self.weights.min(axis=1)), self._told(self.weights.max(axis=1))
        return honest(self.points, (least, most), fakes)

    def _told(self, figure: Floats) -> Floats:
        return self.low + self.span * figure


def mean_of(
    mechanism: DistributionMechanism | RangeTree, domain: Number, counters: Counts
) -> WeightedEstimator:
    """Return the evidence on the mean of a number that is measured by its spread."""
    weights, squares = _weights(mechanism, middles()), _squares(mechanism)
    fixed = float((squares @ counters)[0]) / int(counters.sum())
    return WeightedEstimator(
        counters, weights, fixed, float(domain.low), float(domain.high - domain.low)
    )


def share_between(
    mechanism: RangeTree, domain: Number, counters: Counts, bounds: tuple[float, float]
) -> WeightedEstimator:
    """Return the evidence on the share between two bounds."""
    place = (np.array(bounds) - float(domain.low)) / float(domain.high - domain.low) * BUCKETS
    below, above = (np.clip(end - np.arange(BUCKETS), 0, 1) for end in (place[1], place[0]))
    return WeightedEstimator(counters, _weights(mechanism, below - above), 0.0)


def _weights(mechanism: DistributionMechanism | RangeTree, parts: Floats) -> Floats:
    """Return what each message says of a figure to which a number in a bucket gives its part."""
    if isinstance(mechanism, RangeTree):
        return (parts @ weights_of(mechanism))[np.newaxis]
    return wave_of(mechanism).decoded


def _squares(mechanism: DistributionMechanism | RangeTree) -> Floats:
    """Return the unbiased estimate of a number's square that each message gives."""
    if isinstance(mechanism, RangeTree):
        return _weights(mechanism, middles() ** 2)
    return wave_of(mechanism).squares
