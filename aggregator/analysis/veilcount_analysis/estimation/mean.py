"""Means: figures that are averages over reports, from the counters of messages.

The interval is Agresti and Coull's for shares, carried over to means: z^2 further answers are
added, half of them the least and half the most that a report can count [AC98]. So one answer has an
interval, identical answers have one, and it allows for rare answers that have not come yet.
Of fewer than about 15 answers that is too narrow where the noise is small as well: there Anderson's
interval is taken in, which holds for every population.
Intervals that hold at every look are those of `confidence_sequences`.

A shuffler's cover decodes to the middle of the range on average, with a variance that is known: the
one is subtracted, the other added. Of very few persons among covers the variance of what they send
is not estimated: it is taken for the largest there is, and covers, which are many, for normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import MeanMechanism

from .confidence_intervals import (
    Alpha,
    Bools,
    Counts,
    Ends,
    Floats,
    agresti_coull,
    anderson,
    quantile,
    single,
)
from .confidence_sequences import BOLDEST, TILTS, AnytimeEstimator, Wealth, crossing, mixed
from .estimator import IntervalTarget, honest_range
from .mean_noise import (
    decoded_levels,
    half_width,
    is_few,
    is_rarely_wrong,
    least_noise,
    transition_matrix,
)

FEW_SAMPLED = 4  # reports for each one that `plus` adds


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
    covers: int = 0

    @classmethod
    def from_counters(
        cls, mechanism: MeanMechanism, domain: Number, counters: Counts, covers: int = 0
    ) -> DecodedMean:
        """Return the estimate from the counters of the levels."""
        low, width = float(domain.low), float(domain.high - domain.low)
        levels, n = low + decoded_levels(mechanism) * width, int(counters.sum()) - covers
        mean = (float(counters @ levels) - covers * float(levels.mean())) / n
        squares = (levels - mean) ** 2
        variance = (float(counters @ squares) - covers * float(squares.mean())) / n
        return cls(
            n=n,
            mean=mean,
            variance=max(variance, least_noise(mechanism) * width**2),
            reach=(float(levels.min()), float(levels.max())),
            noise=float(mechanism.variance) * width**2 / 4,
            mechanism=mechanism,
            width=width,
            levels=levels,
            counters=counters,
            covers=covers,
        )

    @property
    def cover_noise(self) -> float:
        """Return n times the variance that covers add to the mean."""
        return self.covers * float(self.levels.var()) / self.n

    @property
    def points(self) -> Floats:
        return np.array([self.mean])

    @property
    def families(self) -> int:
        return 1

    def error(self, target: IntervalTarget) -> Floats:
        variance = self.variance if target.sampled else self.noise
        return np.array([np.sqrt((variance + self.cover_noise) / self.n)])

    def interval(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        """Return the interval: what was received shows noise and sampling together.

        Of these answers only the noise is uncertain. Its variance depends on the answers, and is
        at most the mechanism's, which the normal interval takes; for few reports see `mean_noise`.
        """
        alpha = single(alpha)
        if not target.sampled:
            half = self._noise(alpha)
            return self.points - half, self.points + half
        least, most = (np.array([end]) for end in self.reach)
        z = quantile(alpha)
        is_small, variance = self.n < FEW_SAMPLED * z**2, self.variance
        if is_small and self.covers:
            variance = self.noise + self.width**2 / 4  # of numbers at the two ends
        variances = np.array([variance + self.cover_noise])
        low, high = agresti_coull(self.points, variances, self.n, (least, most), z)
        if is_small and not self.covers and is_rarely_wrong(self.mechanism, self.n):
            least, most = anderson(self.levels, self.counters, alpha)
            return np.minimum(low, least), np.maximum(high, most)
        return low, high

    def few(self, alpha: Alpha, target: IntervalTarget) -> Bools:
        """Whether the noise is not normal; of a sample, the interval makes up for small counts."""
        return np.array([not target.sampled and is_few(self.mechanism, self.n, single(alpha))])

    def _noise(self, alpha: float) -> float:
        """Return what the noise in the mean exceeds with probability at most alpha."""
        if is_few(self.mechanism, self.n, alpha):
            return self.width * half_width(self.mechanism, self.n, alpha, self.covers)
        return quantile(alpha) * float(self.error(IntervalTarget.COHORT)[0])

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest mean: each fake report gives one of the levels."""
        least, most = (np.array([end]) for end in self.reach)
        return honest_range(self.points, least, most, fakes)


def anytime_mean(mechanism: MeanMechanism, domain: Number, counters: Counts) -> AnytimeEstimator:
    """Return the evidence on the mean of a number."""

    def ends(alpha: Alpha, target: IntervalTarget) -> Ends:
        bound = float(np.log(2 / single(alpha)))
        ends_of = _population_ends if target.sampled else _cohort_ends
        low, high = ends_of(mechanism, counters, bound)
        start, width = float(domain.low), float(domain.high - domain.low)
        return start + width * low, start + width * high

    return AnytimeEstimator(DecodedMean.from_counters(mechanism, domain, counters), ends)


def _cohort_ends(mechanism: MeanMechanism, counters: Counts, bound: float) -> Ends:
    """Return the ends for the mean of these numbers: whatever they are."""
    n, levels = int(counters.sum()), decoded_levels(mechanism)
    mean = np.array([float(counters @ levels) / n])
    width = float(np.ptp(levels))

    def wealth(sign: float) -> Wealth:
        tilts = sign * TILTS / width
        noise = worst_noise(mechanism, sign)
        return lambda m: mixed(n * ((mean - m)[:, None] * tilts - noise))

    low = crossing(wealth(1.0), mean, mean - width, bound)
    high = crossing(wealth(-1.0), mean, mean + width, bound)
    return low, high


def _population_ends(mechanism: MeanMechanism, counters: Counts, bound: float) -> Ends:
    n, levels = int(counters.sum()), decoded_levels(mechanism)
    width = float(np.ptp(levels))
    scaled = (levels - levels.min()) / width
    mean = np.array([float(counters @ scaled) / n])

    def wealth(levels: Floats) -> Wealth:
        return lambda m: _bet(levels, counters, m)

    low = crossing(wealth(scaled), mean, np.zeros(1), bound)
    high = 1 - crossing(wealth(1 - scaled), 1 - mean, np.zeros(1), bound)
    return levels.min() + width * low, levels.min() + width * high


def _bet(levels: Floats, counters: Counts, m: Floats) -> Floats:
    """Return the log of the wealth of bets that the mean of the decoded levels is above m."""
    bets = np.minimum(TILTS, BOLDEST / np.maximum(m[:, None], 1e-300))
    gained = np.log1p(bets[..., None] * (levels - m[:, None, None]))
    return mixed(gained @ counters.astype(np.float64))


@lru_cache(maxsize=512)
def worst_noise(mechanism: MeanMechanism, sign: float) -> Floats:
    """Return the most that log E exp(tilt (level - number)) is for any number, tilt by tilt.

    Between two starts the expectation is linear in the number, so that its log less tilt times the
    number is concave: its top is where the slope is 0, if that lies between them, else at an end.
    """
    levels = decoded_levels(mechanism)
    rows = transition_matrix(mechanism)
    tilts = sign * TILTS / float(np.ptp(levels))
    starts = rows @ levels
    expected = np.exp(np.outer(tilts, levels)) @ rows.T
    slope = np.diff(expected) / np.diff(starts)
    with np.errstate(divide="ignore", invalid="ignore"):
        top = starts[:-1] + 1 / tilts[:, None] - expected[:, :-1] / slope
    tops = np.clip(np.nan_to_num(top, posinf=2.0, neginf=-1.0), starts[:-1], starts[1:])
    at = expected[:, :-1] + slope * (tops - starts[:-1])
    inside = np.log(at) - tilts[:, None] * tops
    ends = np.log(expected) - np.outer(tilts, starts)
    worst: Floats = np.maximum(inside.max(axis=1), ends.max(axis=1))
    return worst
