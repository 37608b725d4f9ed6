"""Shares of values and of groups of values, from how many reports support them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .confidence_intervals import (
    Bools,
    Counts,
    Ends,
    Floats,
    bernstein,
    cohort_tails,
    quantile,
    sampled_tails,
    score,
)
from .estimator import IntervalTarget, enough, honest_range
from .response_distribution import ResponseDistribution


@dataclass(frozen=True, slots=True, eq=False)
class SupportCounts:
    """How often n reports support each value or group, all with one response distribution."""

    n: int
    counts: Counts
    response: ResponseDistribution
    families: int

    @property
    def points(self) -> Floats:
        """The unbiased shares."""
        return self.response.share(self.counts / self.n)

    def error(self, target: IntervalTarget) -> Floats:
        """Return the standard errors."""
        return np.sqrt(self.response.variance(self.points, sampled=target.sampled) / self.n)

    def interval(self, alpha: float, target: IntervalTarget) -> Ends:
        """Return score intervals; where counts are small, exact ones.

        Counts repeat, small ones above all, and each is worked out once.
        """
        counts, places = np.unique(self.counts, return_inverse=True)
        once = replace(self, counts=counts)
        ends = score(once.points, self.n, self.response, quantile(alpha), sampled=target.sampled)
        few = once.few(alpha, target)
        if few.any():
            exact = replace(self, counts=counts[few]).of_few(alpha, target)
            for end, better in zip(ends, exact, strict=True):
                end[few] = better
        return ends[0][places], ends[1][places]

    def of_few(self, alpha: float, target: IntervalTarget) -> Ends:
        """Return the intervals that hold at any n."""
        if not self.response.binary:
            sampled = target.sampled
            return bernstein(self.points, self.n, self.response, alpha, sampled=sampled)
        tails = sampled_tails if target.sampled else cohort_tails
        return tails(self.counts, self.n, self.response, alpha)

    def few(self, alpha: float, target: IntervalTarget) -> Bools:
        """Of a sample, the rarer outcome counts; else, how many counts are expected to be noise."""
        if target.sampled and self.response.binary:
            return np.minimum(self.counts, self.n - self.counts) < enough(alpha)
        variance = self.response.gap**2 * self.response.variance(
            self.points, sampled=target.sampled
        )
        return self.n * variance < enough(alpha)

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest shares: a report counts the least or the most."""
        reach = np.array([self.response.least, self.response.most], np.float64)
        least, most = self.response.share(reach)
        return honest_range(self.points, least, most, fakes)

    def rows(self, chosen: slice) -> SupportCounts:
        """Return the evidence on some of the values."""
        return replace(self, counts=self.counts[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class GroupSums:
    """Groups of values under subset selection, each with its response distribution."""

    groups: tuple[SupportCounts, ...]

    @property
    def n(self) -> int:
        """How many reports each group was counted in."""
        return self.groups[0].n

    @property
    def families(self) -> int:
        """Each group is a figure."""
        return len(self.groups)

    @property
    def points(self) -> Floats:
        """The unbiased shares of the groups."""
        return np.concatenate([group.points for group in self.groups])

    def error(self, target: IntervalTarget) -> Floats:
        """Return the standard errors, from the distribution of the whole group."""
        return np.concatenate([group.error(target) for group in self.groups])

    def interval(self, alpha: float, target: IntervalTarget) -> Ends:
        """Return each group's interval."""
        return _side_by_side([group.interval(alpha, target) for group in self.groups])

    def few(self, alpha: float, target: IntervalTarget) -> Bools:
        """Whether each group's counts are small."""
        return np.concatenate([group.few(alpha, target) for group in self.groups])

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of each group's honest share."""
        return _side_by_side([group.poisoned(fakes) for group in self.groups])


def _side_by_side(each: list[Ends]) -> Ends:
    return np.concatenate([low for low, _ in each]), np.concatenate([high for _, high in each])
