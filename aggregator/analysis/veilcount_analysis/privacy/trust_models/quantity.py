"""The estimated quantity, whoever adds the noise: shares of some values, or a number's mean.

Errors are shares, or parts of a number's range. "Cohort" is the noise alone: what separates the
answer from the truth about those who answered. "Population" adds that they are a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import sqrt
from statistics import NormalDist

import numpy as np

from veilcount_shared import select_mechanism
from veilcount_shared.domain import BUCKET_BITS, GRID, HALVES, Number
from veilcount_shared.mechanisms import (
    HashedStrings,
    Moments,
    PairTables,
    Randomizer,
    RangeTree,
    TrendMechanism,
)

from ...mechanisms import handler_of
from ...releases import DiscreteGaussianNoise, DiscreteLaplaceNoise
from ...releases.zcdp import largest_rho
from ..amplification import Family


@dataclass(frozen=True, slots=True)
class ErrorEstimate:
    """How far off: root mean square, and half the width of an interval at the stated level."""

    rmse: float
    half_width: float

    def times(self, scale: float) -> ErrorEstimate:
        """Return the same error in other units."""
        return ErrorEstimate(self.rmse * scale, self.half_width * scale)


def sampling_variance(inputs: int | None, frequencies: Sequence[float] | None) -> float:
    """Return n times the variance that asking a sample brings, averaged over the values.

    By default of equally common values, or (inputs None) of numbers at the ends of their range,
    which is the largest there is. Shares of a number are those of equal parts of its range.
    """
    if frequencies is None:
        return 0.25 if inputs is None else (1 - 1 / inputs) / inputs
    shares = np.clip(np.asarray(frequencies, np.float64), 0, 1)
    if inputs is None:
        places = (np.arange(len(shares)) + 0.5) / len(shares)
        mean = float(shares @ places) / float(shares.sum())
        return float(shares @ (places - mean) ** 2) / float(shares.sum())
    if len(shares) != inputs:
        raise ValueError(f"{len(shares)} shares of {inputs} values: give one for each")
    return float((shares * (1 - shares)).mean())


def with_sampling(noise: ErrorEstimate, n: int, sampling: float, level: float) -> ErrorEstimate:
    """Return the error for the population that those who answered were drawn from."""
    spread = sampling / n
    return ErrorEstimate(
        sqrt(noise.rmse**2 + spread), sqrt(noise.half_width**2 + two_sided(level) ** 2 * spread)
    )


def two_sided(level: float) -> float:
    """Return the two-sided quantile of the standard normal distribution at this level."""
    return NormalDist().inv_cdf((1 + level) / 2)


MOMENT_WIDTH = 2.0  # of a product of numbers from -1 to 1
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
    figures: int = 1  # of which each device reports one
    moved_counts: int = TWO_COUNTS  # of a curator's histogram, by 1, if a person answers otherwise

    @classmethod
    def of_values(cls, k: int) -> Quantity:
        """Return the shares of k values."""
        return cls(ShareMechanisms(k), k)

    @classmethod
    def of_several(cls, family: Family, values: int, most: int) -> Quantity:
        """Return the shares of values of which a person ticks so many at most."""
        moved = min(2 * most, values)
        return cls(family, values, name="share of a value that few tick", moved_counts=moved)

    @classmethod
    def of_strings(cls, bits: int = BUCKET_BITS, parts: int = HALVES) -> Quantity:
        """Return the shares of open strings."""
        hashed = partial(HashedStrings.for_epsilon, bucket_bits=bits, parts=parts)
        return cls(hashed, 1 << bits)

    @classmethod
    def of_features(cls, features: int) -> Quantity:
        """Return the moments of so many numbers, each from -1 to 1."""
        moments = partial(Moments.for_epsilon, features=features)
        many = len(moments(Fraction(1)).moments)
        return cls(moments, None, MOMENT_WIDTH, "moment", many)

    @classmethod
    def of_tables(cls, sizes: tuple[int, ...]) -> Quantity:
        """Return the cells of the largest table of two questions with so many answers."""
        tables = partial(PairTables.for_epsilon, sizes=sizes)
        subsets = tables(Fraction(1)).subsets
        return cls(tables, max(subset.k for subset in subsets), name="cell", figures=len(subsets))

    @classmethod
    def of_trend(cls, periods: int, changes: int) -> Quantity:
        """Return the share of true at the end of a period."""
        return cls(partial(TrendMechanism.for_epsilon, periods=periods, changes=changes), 2)

    @classmethod
    def of_mean(cls, family: Family, domain: Number) -> Quantity:
        """Return the mean of a number between two bounds."""
        return cls(family, None, float(domain.high - domain.low), "mean")

    @classmethod
    def of_quarters(cls) -> Quantity:
        """Return the shares of the quarters of a range."""
        return cls(RangeTree.for_epsilon, QUARTERS, name="share of a quarter of the range")

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
        sensitivity = GRID if self.inputs is None else self.moved_counts
        return DiscreteLaplaceNoise(float(sensitivity / epsilon))

    def gaussian_curator(self, epsilon: Fraction, delta: Fraction) -> DiscreteGaussianNoise:
        """Return the same with Gaussian noise that spends the whole (epsilon, delta) at once."""
        squared = GRID**2 if self.inputs is None else self.moved_counts
        return DiscreteGaussianNoise(sqrt(squared / (2 * largest_rho(epsilon, delta))))

    @property
    def count(self) -> float:
        """One unit of the curator's noise, as a fraction of one person's answer."""
        return self.width / GRID if self.inputs is None else 1.0

    def central(self, epsilon: Fraction, n: int, level: float) -> ErrorEstimate:
        """Return the error where a trusted curator adds the noise, and n is public."""
        return self._curated(self.curator(epsilon), n, level)

    def gaussian(self, epsilon: Fraction, delta: Fraction, n: int, level: float) -> ErrorEstimate:
        """Return the error where the curator's noise is Gaussian."""
        return self._curated(self.gaussian_curator(epsilon, delta), n, level)

    def _curated(
        self, noise: DiscreteLaplaceNoise | DiscreteGaussianNoise, n: int, level: float
    ) -> ErrorEstimate:
        return ErrorEstimate(noise.deviation, noise.half_width(1 - level)).times(self.count / n)

    def sampling(self, frequencies: Sequence[float] | None) -> float:
        """Return n times the variance that asking a sample brings."""
        return sampling_variance(self.inputs, frequencies) * self.width**2 * self.figures
