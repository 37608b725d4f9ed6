"""Ranges of a number with intervals that hold, from the tree of buckets [CKS19; HRMS10].

All levels together overdetermine the buckets. The best linear unbiased reading of them is taken,
weighted for an even spread of the numbers: what constrained inference over the tree comes to where
the levels' exact distributions are known. A share between two bounds, the curve and the mean are
sums of its rows: averages of one weight a report, unbiased however the numbers are spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction

import numpy as np

from veilcount_shared.domain import Number
from veilcount_shared.mechanisms.square_wave import BUCKETS

from ..series.packed_rows import Counters
from .cdf import BucketHistogram, Cdf, Floats, empty_histogram, histogram, isotonic
from .cover_reports import NO_COVERS, CoverReports
from .estimator import IntervalTarget
from .results import ESTIMANDS
from .weighted_estimator import (
    DecodedNumbers,
    WeightedAverage,
    WeightedFigures,
    WeightedMean,
    weighted_figures,
)

GUARANTEED = "every edge at once, however the numbers are spread"
AN_EDGE = 1e-9  # buckets: so near to an edge, a bound was meant to be that edge


@dataclass(frozen=True, slots=True)
class RangeShare:
    """The share of the numbers from one bound up to another: unbiased, its interval holds."""

    above: float
    below: float
    share: float | None  # None where nothing was received
    low: float
    high: float
    estimand: str
    evidence: WeightedAverage | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class TreeReports:
    """The reports that any figure about the buckets is estimated from."""

    weights: Floats
    domain: Number
    counters: Counters
    level: float
    target: IntervalTarget
    covers: CoverReports = NO_COVERS

    @property
    def n(self) -> int:
        """How many of them are of persons."""
        return int(self.counters.sum()) - self.covers.count

    @property
    def buckets(self) -> Floats:
        """The raw share of each bucket."""
        shares: Floats = self.weights @ (self.covers.persons(self.counters) / self.n)
        return shares

    def read(self, parts: Floats, figures: int = 1) -> WeightedFigures:
        """Return figures (one row each) to which a number in a bucket contributes that part.

        All intervals hold at once where `figures` is their number [Bonferroni].
        """
        fixed = parts**2 @ self.buckets
        return weighted_figures(
            parts @ self.weights,
            self.counters,
            (1 - self.level) / figures,
            fixed if self.target == IntervalTarget.COHORT else None,
            self.covers,
        )

    def between(self, above: float, below: float) -> RangeShare:
        """Return the share between two bounds; see `RangeEstimator.between`."""
        parts = np.diff(
            np.clip(self._place(above, below) - np.arange(BUCKETS)[:, np.newaxis], 0, 1)
        )[:, 0]
        if self.n <= 0:
            return RangeShare(above, below, None, 0.0, 1.0, ESTIMANDS[self.target])
        figures = self.read(np.stack([parts, parts == 1, parts > 0]))
        share, low, high = float(figures.value[0]), float(figures.low[1]), float(figures.high[2])
        weights = parts[np.newaxis] @ self.weights
        evidence = WeightedAverage(self.counters, weights, self.covers)
        return RangeShare(above, below, share, low, high, ESTIMANDS[self.target], evidence)

    def _place(self, *bounds: float) -> Floats:
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

    reports: TreeReports = field(repr=False, compare=False)

    @classmethod
    def extend(cls, histogram: BucketHistogram, reports: TreeReports) -> RangeEstimator:
        """Return a histogram together with the reports that shares of ranges are read from."""
        histogram_fields = {
            field_.name: getattr(histogram, field_.name) for field_ in fields(histogram)
        }
        return cls(**histogram_fields, reports=reports)

    def between(self, above: float, below: float) -> RangeShare:
        """Return the share of numbers from `above` up to, not including, `below`.

        The range's upper end counts as below itself. Within a bucket nothing is known: of a bucket
        that a bound cuts, the share counts the part, the lower bound nothing and the upper bound
        all.
        """
        if not above < below:
            raise ValueError(f"from {above} up to {below}: give the lower bound first")
        return self.reports.between(above, below)


@dataclass(frozen=True, slots=True, eq=False)
class TreeReading:
    """The weight of each message in each bucket's share, and what it decodes to for the mean."""

    weights: Floats
    numbers: DecodedNumbers

    @classmethod
    def from_levels(cls, levels: Sequence[LevelResponse]) -> TreeReading:
        """Return the best linear unbiased reading of the levels."""
        weights = bucket_weights(levels)
        rows = np.concatenate([level.outside + level.added for level in levels], axis=1)
        middles = (np.arange(BUCKETS) + 0.5) / BUCKETS
        numbers, squares = ((middles**power)[np.newaxis] @ weights for power in (1, 2))
        noise = DecodedNumbers.from_rows(numbers, squares, rows / len(levels), middles)
        return cls(weights, noise)


def estimate_ranges(
    reading: TreeReading,
    domain: Number,
    counters: Counters,
    level: float = 0.95,
    *,
    target: IntervalTarget = IntervalTarget.COHORT,
    covers: CoverReports = NO_COVERS,
) -> RangeEstimator:
    """Return shares, CDF and mean."""
    reports = TreeReports(reading.weights, domain, counters, level, target, covers)
    if reports.n <= 0:
        return RangeEstimator.extend(empty_histogram(domain, level, target), reports)
    below = reports.read(np.tri(BUCKETS - 1, BUCKETS), figures=BUCKETS - 1)
    share = np.clip(isotonic(below.value), 0, 1)
    estimate = histogram(
        level,
        target,
        frequency=reports.buckets,
        curve=Cdf.between(domain, share, below.low, below.high, GUARANTEED),
        evidence=WeightedMean.from_counters(domain, counters, reading.numbers, covers),
    )
    return RangeEstimator.extend(estimate, reports)


@dataclass(frozen=True, slots=True, eq=False)
class LevelResponse:
    """The distribution of the messages of one level."""

    outside: float  # the probability of a message that a node does not own
    added: Floats  # what the messages that it owns have above that: a row per bucket

    @classmethod
    def from_incidence(cls, P: Fraction, owned: int, incidence: Floats) -> LevelResponse:
        """Return it from the messages that each node owns, in all with probability P."""
        nodes, messages = incidence.shape
        outside = (1 - P) / (messages - owned)
        added = float(P / owned - outside) * incidence
        return cls(float(outside), np.repeat(added, BUCKETS // nodes, axis=0))


def bucket_weights(levels: Sequence[LevelResponse]) -> Floats:
    """Return the weight of each message in each bucket's share, by generalized least squares.

    The distribution of a bucket's message is that of an even spread and what the bucket adds to it;
    that part alone is inverted, in its own scale, so that it is as exact for a small epsilon as for
    any. It has no information on the sum of all shares, which is 1: that direction is filled up.
    """
    response = np.concatenate([level.added for level in levels], axis=1)
    even = np.concatenate([np.full(level.added.shape[1], level.outside) for level in levels])
    even = (even + response.mean(axis=0)) / len(levels)
    centred = response - response.mean(axis=0)
    information = centred / even @ centred.T
    information += np.trace(information) / BUCKETS**2
    weights = np.linalg.solve(information, centred / even) * len(levels)
    weights -= weights.mean(axis=0)  # what rounding has left in that direction
    unbiased: Floats = weights + (1 / BUCKETS - weights @ even)[:, np.newaxis]
    return unbiased
