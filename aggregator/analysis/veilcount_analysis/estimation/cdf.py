"""How a number is spread over 256 buckets: their shares, the curve over their edges, the mean."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.domain import Number
from veilcount_shared.mechanisms.square_wave import BUCKETS

from .estimator import IntervalTarget
from .results import ESTIMANDS
from .weighted_estimator import WeightedMean

Floats = NDArray[np.float64]
CERTAIN = "all that is certain without reports"


@dataclass(frozen=True, slots=True)
class Quantile:
    """The number below which a share of the population lies, and its bounds."""

    share: float
    value: float | None  # None where nothing was received
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Cdf:
    """The share below each of 257 edges; bounds within [0, 1] that rise as the curve does."""

    edges: Floats
    share: Floats | None  # None where nothing was received
    low: Floats
    high: Floats
    covers: str  # what the band is for

    @classmethod
    def between(
        cls, domain: Number, share: Floats | None, low: Floats, high: Floats, covers: str
    ) -> Cdf:
        """Return the curve with its ends, which are certain, and a band that rises.

        The arguments are for the 255 edges inside. The true curve rises, so a bound at one edge
        holds from there on: none is looser than its neighbour's.
        """
        rising_low = np.maximum.accumulate(np.clip(low, 0, 1))
        rising_high = np.minimum.accumulate(np.clip(high, 0, 1)[::-1])[::-1]
        ended = None if share is None else _ended(share)
        return cls(edges(domain), ended, _ended(rising_low), _ended(rising_high), covers)

    def quantile(self, share: float) -> Quantile:
        """Return where the curve reaches a share; its bounds are edges where the band does.

        Where the upper bound is still below the share, the quantile is not; where the lower bound
        has reached it, the quantile was.
        """
        if not 0 < share < 1:
            raise ValueError(f"share = {share}: give a number between 0 and 1")
        low = self.edges[np.flatnonzero(self.high < share)[-1]]
        high = self.edges[np.flatnonzero(self.low >= share)[0]]
        return Quantile(share, self._reached(share), float(low), float(high))

    def _reached(self, share: float) -> float | None:
        """Return where the share is reached, as if each bucket were filled evenly."""
        if self.share is None:
            return None
        after = int(np.flatnonzero(self.share >= share)[0])
        below, above = self.share[after - 1], self.share[after]
        part = (share - below) / (above - below)
        return float(self.edges[after - 1] + part * (self.edges[after] - self.edges[after - 1]))


@dataclass(frozen=True, slots=True)
class BucketHistogram:
    """The shares of 256 buckets, their curve, and the mean of the buckets' middles.

    `low` and `high` are the mean's interval; the mean of the numbers themselves is within half a
    bucket of that of the middles. Without answers there are no points, and the bounds are all that
    is certain.
    """

    n: int
    level: float
    estimand: str  # what the mean's interval is of
    mean: float | None
    low: float
    high: float
    frequency: Floats | None
    curve: Cdf
    evidence: WeightedMean | None = field(repr=False, compare=False)  # of the mean


def histogram(
    level: float,
    target: IntervalTarget,
    *,
    frequency: Floats,
    curve: Cdf,
    evidence: WeightedMean,
) -> BucketHistogram:
    """Return the histogram, with the mean of its evidence."""
    low, high = (float(end[0]) for end in evidence.interval(1 - level, target))
    mean, estimand = float(evidence.points[0]), ESTIMANDS[target]
    return BucketHistogram(evidence.n, level, estimand, mean, low, high, frequency, curve, evidence)


def empty_histogram(domain: Number, level: float, target: IntervalTarget) -> BucketHistogram:
    """Return what is known before the first answer: that a number lies in its range."""
    inside = np.zeros(BUCKETS - 1)
    curve = Cdf.between(domain, None, inside, inside + 1, CERTAIN)
    low, high = float(domain.low), float(domain.high)
    return BucketHistogram(0, level, ESTIMANDS[target], None, low, high, None, curve, None)


def edges(domain: Number) -> Floats:
    """Return the 257 edges of the buckets, in the unit of the range."""
    width = float(domain.high - domain.low)
    return float(domain.low) + width * np.arange(BUCKETS + 1) / BUCKETS


def isotonic(values: Floats) -> Floats:
    """Return the nearest values that never fall [isotonic regression, max-min of averages]."""
    ends = np.concatenate([[0.0], np.cumsum(values)])
    place = np.arange(len(values))
    after = place >= place[:, np.newaxis]  # row: the first of a block, column: its last
    size = np.where(after, place - place[:, np.newaxis] + 1, 1)
    average = (ends[1:] - ends[:-1, np.newaxis]) / size
    least = np.minimum.accumulate(np.where(after, average, np.inf)[:, ::-1], axis=1)[:, ::-1]
    largest: Floats = np.maximum.accumulate(np.where(after, least, -np.inf), axis=0).diagonal()
    return largest


def _ended(inside: Floats) -> Floats:
    return np.concatenate([[0.0], inside, [1.0]])
