"""Which of some candidate strings were reported, and by how many.

A candidate is a pair of hashed buckets, one in each half of the devices. It is found if both halves
together hold it far above noise, and each of them alone far enough that no other string's bucket
explains it:

- with noise alone, both halves together pass with probability `alpha`;
- a bucket that another string made heavy lifts one half only. Of m buckets H are heavy and belong
  to no string that was found, so of D candidates about 2 D H / m meet one; the other half alone
  passes with a probability that makes these few, too. One whose bucket belongs to a string that was
  found must be found by its other half alone.

The strongest in each bucket comes first. What is heavy for no known reason is less with each string
found, so this is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..scipy_modules import special
from .confidence_intervals import Alpha, Bools, Counts, Ends, Floats, quantile
from .covered_supports import CoveredSupports, among_covers, persons_part
from .estimator import IntervalTarget
from .proportions import SupportCounts
from .response_distribution import ResponseDistribution

ALL_FAKE = 0.99  # of a part
HEAVY = 3.5  # standard errors above noise
COLLISIONS = 0.1  # expected number of strings found because their bucket is another's
LEAST = 2.05  # standard errors of each half, however few buckets are heavy
SCORE_STEP = 1e-4  # of the score of a string that is found half of the time
BY_LETTERS = 1e-5  # with which a beginning passes by chance, about, until a string is found
APART = 5.0  # standard errors between the halves: one of them holds another string, too


@dataclass(frozen=True, slots=True, eq=False)
class HalfSupports:
    """How often the reports of each half support each candidate."""

    sizes: Counts
    counts: Counts  # a row for each half
    response: ResponseDistribution
    families: int
    covers: int = 0
    cover_support: float = 0.0

    @property
    def n(self) -> int:
        return int(self.sizes.sum()) - self.covers

    @property
    def whole(self) -> SupportCounts:
        """Both halves together."""
        counts = self.counts.sum(axis=0)
        if not self.covers:
            return SupportCounts(self.n, counts, self.response, self.families)
        among = self.covers, self.cover_support
        return CoveredSupports(self.n, counts, self.response, self.families, *among)

    @property
    def halves(self) -> tuple[SupportCounts, ...]:
        """Each half alone."""
        part = persons_part(self.n, self.covers)
        halves = (
            SupportCounts(max(int(size), 1), counts, self.response, self.families)
            for size, counts in zip(self.sizes, self.counts, strict=True)
        )
        return tuple(among_covers(half, part, self.cover_support) for half in halves)

    @property
    def shared(self) -> Bools:
        """Which candidates share a bucket: the halves differ, and the smaller one counts."""
        one, two = (half.points for half in self.halves)
        errors = [half.error(IntervalTarget.COHORT) for half in self.halves]
        apart: Bools = np.abs(one - two) > APART * np.hypot(*errors)
        return apart if self.sizes.all() else np.zeros_like(apart)

    @property
    def points(self) -> Floats:
        one, two = (half.points for half in self.halves)
        return np.where(self.shared, np.minimum(one, two), self.whole.points)

    def error(self, target: IntervalTarget) -> Floats:
        return self._chosen([half.error(target) for half in (self.whole, *self.halves)])

    def interval(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        ends = [half.interval(alpha, target) for half in (self.whole, *self.halves)]
        return self._chosen([low for low, _ in ends]), self._chosen([high for _, high in ends])

    def few(self, alpha: Alpha, target: IntervalTarget) -> Bools:
        return self.whole.few(alpha, target)

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest shares: a fake chooses its half.

        All fakes in one half make the halves differ, or hide that they do. So the honest share was
        that of the whole or of the smaller half, whichever is shown.
        """
        low, high = self.whole.poisoned(fakes)
        if not self.sizes.all():
            return low, high
        one, two = (
            half.poisoned(min(fakes * int(self.sizes.sum()) / half.n, ALL_FAKE))
            for half in self.halves
        )
        least: Floats = np.minimum(low, np.minimum(one[0], two[0]))
        most: Floats = np.maximum(high, np.minimum(one[1], two[1]))
        return least, most

    @property
    def supports(self) -> Counts:
        """How often the reports of both halves support each candidate."""
        return self.whole.counts

    def _chosen(self, figures: list[Floats]) -> Floats:
        """Return the figure of the whole; where a bucket is shared, of the smaller half."""
        whole, one, two = figures
        first, second = (half.points for half in self.halves)
        return np.where(self.shared, np.where(first < second, one, two), whole)


@dataclass(frozen=True, slots=True, eq=False)
class PartSupports:
    """How often the reports of one part support each string; n counts those of all parts."""

    n: int
    part: SupportCounts
    covers: int = 0

    @property
    def points(self) -> Floats:
        return self.part.points

    @property
    def families(self) -> int:
        return self.part.families

    @property
    def supports(self) -> Counts:
        """How often the reports of the part support each string."""
        return self.part.counts

    def error(self, target: IntervalTarget) -> Floats:
        return self.part.error(target)

    def interval(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        return self.part.interval(alpha, target)

    def few(self, alpha: Alpha, target: IntervalTarget) -> Bools:
        return self.part.few(alpha, target)

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest shares, where all fakes choose this part."""
        received = self.n + self.covers  # persons are as frequent in a part as in all of them
        return self.part.poisoned(min(fakes * received / self.part.n, ALL_FAKE))


def part_scores(
    supports: NDArray[np.integer[Any]], sizes: Counts, response: ResponseDistribution
) -> Floats:
    """Return how many standard errors the supports of each part lie above noise."""
    n = np.maximum(sizes, 1)[:, np.newaxis]
    error = np.sqrt(response.floor / n) / response.gap
    return response.share(supports / n) / error


def possible(scores: Floats, buckets: Counts, alpha: float) -> Counts:
    """Return the indices of the candidates that `find` may find: whole or half far above noise.

    `scores` are those of all buckets, `buckets` those of the candidates; a row for each half.
    """
    held, needed = _held(scores, buckets), _score(alpha)
    return np.flatnonzero((_both(held) > needed) | (held.max(axis=0) > needed))


def find(scores: Floats, buckets: Counts, alpha: float, candidates: int) -> Counts:
    """Return the indices of the candidates found, each by chance with probability alpha.

    `buckets` are those of the possible ones among so many candidates.
    """
    held, needed = _held(scores, buckets), _score(alpha)
    both, matched = _both(held), np.zeros(buckets.shape[1], np.bool_)
    explained = np.zeros(scores.shape, np.bool_)
    while True:  # until nothing new is found
        owned = np.stack([row[places] for row, places in zip(explained, buckets, strict=True)])
        meets: Bools = np.logical_or.reduce(owned)
        alone = _score(_collision_level(scores, explained, candidates))
        free = (both > needed) & (held.min(axis=0) > max(alone, LEAST)) & ~meets
        other = meets & (np.where(owned, -np.inf, held).max(axis=0) > needed)
        new: Bools = (_strongest(free & ~matched, both, buckets) | other) & ~matched
        if not new.any():
            return np.flatnonzero(matched)
        matched |= new
        for row, places in zip(explained, buckets, strict=True):
            row[places[new]] = True


def _held(scores: Floats, buckets: Counts) -> Floats:
    return np.stack([row[places] for row, places in zip(scores, buckets, strict=True)])


def _both(held: Floats) -> Floats:
    both: Floats = held.sum(axis=0) / sqrt(len(held))
    return both


def _strongest(passing: Bools, both: Floats, buckets: Counts) -> Bools:
    """Return which candidates are the strongest of those that pass in each of their buckets."""
    falling = np.flatnonzero(passing)
    falling = falling[np.argsort(-both[falling], kind="stable")]
    first = np.zeros((len(buckets), len(passing)), np.bool_)
    for row, places in zip(first, buckets, strict=True):
        row[falling[np.unique(places[falling], return_index=True)[1]]] = True
    chosen: Bools = np.logical_and.reduce(first)
    return chosen


def least_share(response: ResponseDistribution, n: float, alpha: float) -> float:
    """Return the share of a string that is found half of the time, by both halves."""
    return _median_score(alpha) * sqrt(response.floor / n) / response.gap


def least_share_by_letters(response: ResponseDistribution, n: float) -> float:
    """Return that of a string that is found by its beginnings, about, n for each part."""
    return _score(BY_LETTERS) * sqrt(response.floor / n) / response.gap


@lru_cache(maxsize=256)
def _median_score(alpha: float) -> float:
    """Return the score of a string that passes in both halves, and together, half of the time.

    Where alpha is large, the halves decide: each must stand LEAST above noise.
    """
    needed, steps = _score(alpha), np.linspace(-8, 8, 3_201)
    weights = np.exp(-(steps**2) / 2)
    weights /= weights.sum()

    def power(score: float) -> float:
        mean = score / sqrt(2)
        first = mean + steps
        second = special.ndtr(mean - np.maximum(sqrt(2) * needed - first, LEAST))
        return float(weights @ (second * (first > LEAST)))

    low, high = 0.0, 2 * needed + 2 * LEAST
    while high - low > SCORE_STEP:
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle) < 1 / 2 else (low, middle)
    return high


def _collision_level(scores: Floats, known: Bools, candidates: int) -> float:
    """Return the level of one half at which few candidates are found by a shared bucket."""
    halves, buckets = len(scores), int(scores.shape[1])
    heavy = int(((scores > HEAVY) & ~known).sum(axis=1).max())
    unexplained = max(heavy - buckets * _tail(HEAVY), 1.0)
    meetings = halves * candidates * unexplained / buckets
    return min(0.5, COLLISIONS / max(meetings, COLLISIONS))


def _score(alpha: float) -> float:
    """Return the standard errors that noise exceeds with probability alpha, on one side."""
    return quantile(2 * alpha)


def _tail(score: float) -> float:
    """Return the probability that noise exceeds these standard errors."""
    return float(special.ndtr(-score))
