"""Ranges of a number with intervals that hold, from the tree of buckets [CKS19; HRMS10].

All levels together overdetermine the buckets. The best linear unbiased reading of them is taken,
weighted for an even spread of the numbers: what constrained inference over the tree comes to where
the levels' exact laws are known. A share between two bounds, the curve and the mean are sums of its
rows: averages of one weight a report, unbiased for every crowd, however its numbers are spread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import ProjectiveGeometry, RangeTree, SubsetSelection
from veilcount_shared.mechanisms.square_wave import BUCKETS

from ..series.tally import Counters
from .cdf import BucketHistogram, Curve, Floats, histogram, middles, nothing, rising
from .estimator import IntervalTarget
from .linear_estimators import Reading, read
from .projective_vectors import meets, vectors
from .results import OF

GUARANTEED = "every edge at once, however the numbers are spread"
AN_EDGE = 1e-9  # buckets: so near to an edge, a bound was meant to be that edge


@dataclass(frozen=True, slots=True)
class Share:
    """The share of the numbers from one bound up to another: unbiased, its interval holds."""

    above: float
    below: float
    share: float | None  # None where nothing was received
    low: float
    high: float
    of: str


@dataclass(frozen=True, eq=False)
class Source:
    """What any figure about the buckets is read from."""

    mechanism: RangeTree
    domain: Number
    counters: Counters
    level: float
    target: IntervalTarget

    def read(self, parts: Floats, figures: int = 1) -> Reading:
        """Return figures (one row each) to which a number in a bucket contributes that part.

        All intervals hold at once where `figures` is their number [Bonferroni].
        """
        weights = weights_of(self.mechanism)
        fixed = parts**2 @ (weights @ (self.counters / self.counters.sum()))
        miss = (1 - self.level) / figures
        return read(
            parts @ weights,
            self.counters,
            miss,
            fixed if self.target == IntervalTarget.COHORT else None,
        )

    def between(self, above: float, below: float) -> Share:
        """Return the share between two bounds; see `Ranges.between`."""
        parts = np.diff(
            np.clip(self._place(above, below) - np.arange(BUCKETS)[:, np.newaxis], 0, 1)
        )
        share, low, high = None, 0.0, 1.0
        if self.counters.any():
            told = self.read(np.stack([parts[:, 0], parts[:, 0] == 1, parts[:, 0] > 0]))
            share, low, high = (float(told.value[0]), float(told.low[1]), float(told.high[2]))
        return Share(above, below, share, low, high, OF[self.target])

    def _place(self, *bounds: float) -> Floats:
        """Return where bounds are in the range, in buckets."""
        low, high = float(self.domain.low), float(self.domain.high)
        place = (np.array(bounds) - low) / (high - low) * BUCKETS
        edge = np.rint(place)
        return np.where(abs(place - edge) < AN_EDGE, edge, place)


@dataclass(frozen=True, slots=True)
class RangeEstimator(BucketHistogram):
    """A histogram whose band holds at every edge at once, and the share of any range.

    `frequency` is raw: unbiased, so that its sums are, and below zero now and then. The curve is
    the nearest to its running sums that rises from 0 to 1.
    """

    source: Source = field(repr=False, compare=False)

    def between(self, above: float, below: float) -> Share:
        """Return the share of numbers from `above` up to, not including, `below`.

        The range's upper end counts as below itself. Within a bucket nothing is known: of a bucket
        that a bound cuts, the share counts the part, the lower bound nothing and the upper bound
        all.
        """
        if not above < below:
            raise ValueError(f"from {above} up to {below}: give the lower bound first")
        return self.source.between(above, below)


def ranges(
    mechanism: RangeTree,
    domain: Number,
    counters: Counters,
    level: float = 0.95,
    *,
    target: IntervalTarget = IntervalTarget.COHORT,
) -> RangeEstimator:
    """Return shares, curve, quantiles and mean, all with intervals that hold."""
    source = Source(mechanism, domain, counters, level, target)
    n = int(counters.sum())
    if not n:
        return _with(source, nothing(domain, level, target))
    buckets = weights_of(mechanism) @ (counters / n)
    below = source.read(np.tri(BUCKETS - 1, BUCKETS), figures=BUCKETS - 1)
    share = np.clip(rising(below.value), 0, 1)
    curve = Curve.between(domain, share, below.low, below.high, GUARANTEED)
    mean = source.read(middles()[np.newaxis])
    return _with(
        source, histogram(domain, n, level, target, mean=mean, frequency=buckets, curve=curve)
    )


def _with(source: Source, of: BucketHistogram) -> RangeEstimator:
    return RangeEstimator(
        of.n, of.level, of.of, of.mean, of.low, of.high, of.frequency, of.curve, source
    )


@lru_cache(maxsize=8)
def weights_of(mechanism: RangeTree) -> Floats:
    """Return the weight of each message in each bucket's share, by generalized least squares.

    The law of a bucket's message is that of an even spread and what the bucket adds to it; that
    part alone is inverted, in its own scale, so that it is as exact for a small epsilon as for any.
    It tells nothing about the sum of all shares, which is 1: the direction is filled up.
    """
    law = np.concatenate(
        [_added(mechanism, level) for level in range(len(mechanism.levels))], axis=1
    )
    even = np.concatenate([np.full(level.messages, _outside(level)) for level in mechanism.levels])
    even = (even + law.mean(axis=0)) / len(mechanism.levels)
    told = law - law.mean(axis=0)
    information = told / even @ told.T
    information += np.trace(information) / BUCKETS**2
    weights = np.linalg.solve(information, told / even) * len(mechanism.levels)
    weights -= weights.mean(axis=0)  # what rounding has left in that direction
    unbiased: Floats = weights + (1 / BUCKETS - weights @ even)[:, np.newaxis]
    return unbiased


def _outside(level: SubsetSelection | ProjectiveGeometry) -> float:
    """Return the probability, given the level, of a message that a node does not own."""
    return float((1 - level.P) / (level.messages - _owned(level)))


def _added(mechanism: RangeTree, place: int) -> Floats:
    """Return what the law given the level is above `_outside`, for each bucket."""
    level = mechanism.levels[place]
    own = level.P / _owned(level)
    added = float(own - (1 - level.P) / (level.messages - _owned(level)))
    return np.repeat(added * _owns(level), BUCKETS // level.inputs, axis=0)


def _owned(level: SubsetSelection | ProjectiveGeometry) -> int:
    return level.support_size if isinstance(level, ProjectiveGeometry) else 1


def _owns(level: SubsetSelection | ProjectiveGeometry) -> Floats:
    """Return which messages each node owns: itself, or the hyperplanes through its point."""
    if isinstance(level, SubsetSelection):
        return np.eye(level.k)
    hyperplanes = vectors(level.q, level.t, np.arange(level.messages))
    return np.array([meets(level, hyperplanes, x) for x in range(level.k)], np.float64)
