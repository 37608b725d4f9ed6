"""The estimated quantity, whoever adds the noise: shares of some values, or a number's mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import sqrt

from veilcount_shared import Collection, select_mechanism
from veilcount_shared.collection import Measure
from veilcount_shared.domain import GRID, Number
from veilcount_shared.mechanisms import DistributionMechanism, MeanMechanism, Randomizer, RangeTree

from ...central import DiscreteLaplaceNoise
from ...mechanisms import handler_of
from ..amplification import Family
from .error_models import ErrorEstimate, sampling_variance, two_sided

QUARTERS = 4  # a tree's first level
TWO_COUNTS = 2  # a person who answers otherwise moves two counts of a histogram by 1


@dataclass(frozen=True, slots=True)
class ShareMechanisms:
    """The mechanisms of k values, one at each epsilon."""

    k: int

    def __call__(self, epsilon: Fraction) -> Randomizer:
        """Return the one at this epsilon."""
        return select_mechanism(self.k, epsilon).mechanism


@lru_cache(maxsize=1 << 14)
def _variance(family: Family, epsilon: Fraction) -> float:
    """Searches come back to the same epsilons, and a table for a mean takes exact comparisons."""
    return handler_of(family(epsilon)).noise_variance()


@dataclass(frozen=True, slots=True)
class Quantity:
    """Errors are in its own units: a share of 1, or the number's."""

    family: Family
    inputs: int | None  # how many values; of a number none
    width: float = 1.0  # from the lowest possible truth to the highest
    name: str = "share"

    @classmethod
    def of(cls, collection: Collection) -> Quantity:
        """Return what a collection estimates."""
        if isinstance(collection.domain, Number):
            return cls.of_range(collection.domain, collection.measure or Measure.MEAN)
        return cls.of_values(collection.inputs)

    @classmethod
    def of_values(cls, k: int) -> Quantity:
        """Return the shares of k values."""
        return cls(ShareMechanisms(k), k)

    @classmethod
    def of_range(cls, domain: Number, measure: Measure) -> Quantity:
        """Return the mean of a number; of one measured by ranges, the shares of its quarters."""
        if measure is Measure.RANGES:
            return cls(RangeTree.for_epsilon, QUARTERS, name="share of a quarter of the range")
        family = (
            DistributionMechanism.for_epsilon
            if measure is Measure.DISTRIBUTION
            else MeanMechanism.for_epsilon
        )
        return cls(family, None, float(domain.high - domain.low), "mean")

    def variance(self, epsilon: Fraction) -> float:
        """Return n times the variance that devices' own noise brings."""
        return _variance(self.family, epsilon) * self.width**2

    def excess(self, epsilon: Fraction) -> float | None:
        """Return by which part the devices' variance is above the least of any randomizer [YB18].

        Of values, at the uniform distribution. None: of a number, for which no least is known.
        """
        if not isinstance(self.family, ShareMechanisms):
            return None
        return select_mechanism(self.family.k, epsilon).ratio - 1

    def local(self, epsilon: Fraction, n: int, level: float) -> ErrorEstimate:
        """Return the error where n devices add the noise."""
        rmse = sqrt(self.variance(epsilon) / n)
        return ErrorEstimate(rmse, two_sided(level) * rmse)

    def curator(self, epsilon: Fraction) -> DiscreteLaplaceNoise:
        """Return a trusted curator's noise: on a histogram, or on a sum over the number's grid."""
        sensitivity = GRID if self.inputs is None else TWO_COUNTS
        return DiscreteLaplaceNoise(float(sensitivity / epsilon))

    @property
    def count(self) -> float:
        """What one step of a curator's noise is of one person's answer."""
        return self.width / GRID if self.inputs is None else 1.0

    def central(self, epsilon: Fraction, n: int, level: float) -> ErrorEstimate:
        """Return the error where a trusted curator adds the noise, and n is public."""
        noise = self.curator(epsilon)
        return ErrorEstimate(noise.deviation, noise.half_width(1 - level)).times(self.count / n)

    def sampling(self, frequencies: Sequence[float] | None) -> float:
        """Return n times the variance that asking a sample brings."""
        return sampling_variance(self.inputs, frequencies) * self.width**2
