"""Means: figures that are averages over reports, from the counters of messages.

The interval is Agresti and Coull's for shares, carried over to means: z^2 further answers are
added, half of them the least and half the most that a report can count [AC98]. So one answer has an
interval, identical answers have one, and it allows for rare answers that have not come yet.
Of fewer than about 15 answers that is too narrow where the noise is small as well: there Anderson's
interval is taken in, which holds for every population.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import MeanMechanism

from .confidence_intervals import Bools, Counts, Ends, Floats, quantile
from .estimator import IntervalTarget, honest_range
from .mean_levels import decoded_levels, least_noise
from .mean_noise import half_width, is_few, is_rarely_wrong

FEW_SAMPLED = 4  # reports for each one that `plus` adds


def agresti_coull(
    mean: Floats, variance: Floats, n: int, reach: tuple[Floats, Floats], z: float
) -> Ends:
    """Return intervals for means of n reports, from the variance and the reach of one."""
    least, most = reach
    middle, half = (least + most) / 2, (most - least) / 2
    total = n + z * z
    centre = (n * mean + z * z * middle) / total
    square = n * (variance + (mean - centre) ** 2) + z * z * (half**2 + (middle - centre) ** 2)
    spread = z * np.sqrt(square) / total
    return centre - spread, centre + spread


def anderson(levels: Floats, counters: Counts, alpha: float) -> Ends:
    """Return Anderson's interval for the mean of any distribution on ascending levels [And69].

    On either side the distribution function leaves the sample's by more than the margin with
    probability at most alpha / 2 [Mas90]; the mean is extreme where it does so everywhere.
    """
    n = counters.sum()
    margin = np.sqrt(np.log(2 / alpha) / (2 * n))
    below, gaps = np.cumsum(counters)[:-1] / n, np.diff(levels)
    low, high = np.minimum(below + margin, 1) @ gaps, np.maximum(below - margin, 0) @ gaps
    return np.array([levels[-1] - low]), np.array([levels[-1] - high])


@dataclass(frozen=True, slots=True, eq=False)
class DecodedMean:
    """The decoded levels of a mean's reports, in the units of its range."""

    n: int
    mean: float
    variance: float
    reach: tuple[float, float]
    noise: float
    mechanism: MeanMechanism
    width: float
    levels: Floats
    counters: Counts

    @classmethod
    def from_counters(
        cls, mechanism: MeanMechanism, domain: Number, counters: Counts
    ) -> DecodedMean:
        """Return the estimate from the counters of the levels."""
        low, width = float(domain.low), float(domain.high - domain.low)
        levels, n = low + decoded_levels(mechanism) * width, int(counters.sum())
        mean = float(counters @ levels) / n
        least = least_noise(mechanism) * width**2
        return cls(
            n=n,
            mean=mean,
            variance=max(float(counters @ (levels - mean) ** 2) / n, least),
            reach=(float(levels.min()), float(levels.max())),
            noise=float(mechanism.variance) * width**2 / 4,
            mechanism=mechanism,
            width=width,
            levels=levels,
            counters=counters,
        )

    @property
    def points(self) -> Floats:
        """The unbiased mean."""
        return np.array([self.mean])

    @property
    def families(self) -> int:
        """One figure."""
        return 1

    def error(self, target: IntervalTarget) -> Floats:
        """Return the standard error."""
        variance = self.variance if target.sampled else self.noise
        return np.array([np.sqrt(variance / self.n)])

    def interval(self, alpha: float, target: IntervalTarget) -> Ends:
        """Return the interval: what was received shows noise and sampling together.

        Of these answers only the noise is uncertain. Its variance depends on the answers, and is
        at most the mechanism's, which the normal interval takes; for few reports see `mean_noise`.
        """
        if not target.sampled:
            half = self._noise(alpha)
            return self.points - half, self.points + half
        least, most = (np.array([end]) for end in self.reach)
        z = quantile(alpha)
        low, high = agresti_coull(self.points, np.array([self.variance]), self.n, (least, most), z)
        if self.n < FEW_SAMPLED * z**2 and is_rarely_wrong(self.mechanism, self.n):
            least, most = anderson(self.levels, self.counters, alpha)
            return np.minimum(low, least), np.maximum(high, most)
        return low, high

    def few(self, alpha: float, target: IntervalTarget) -> Bools:
        """Whether the noise is not normal; of a sample, the interval makes up for small counts."""
        return np.array([not target.sampled and is_few(self.mechanism, self.n, alpha)])

    def _noise(self, alpha: float) -> float:
        """Return what the noise in the mean exceeds with probability at most alpha."""
        if is_few(self.mechanism, self.n, alpha):
            return self.width * half_width(self.mechanism, self.n, alpha)
        return quantile(alpha) * float(np.sqrt(self.noise / self.n))

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest mean: each fake report gives one of the levels."""
        least, most = (np.array([end]) for end in self.reach)
        return honest_range(self.points, least, most, fakes)
