"""Shares of values, and of groups of values such as all dark themes or all other brands.

A sum over a group is unbiased like the shares it adds up, with the variance of the sum itself:
supports of two values are not independent, so errors of shares do not add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veilcount_shared.domain import Cross, Label
from veilcount_shared.mechanisms import ProjectiveGeometry
from veilcount_shared.mechanisms.projective_geometry import points

from .cohort_tails import cohort_tails
from .confidence_intervals import (
    Alpha,
    Bools,
    Counts,
    Ends,
    Floats,
    agresti_coull,
    bernstein,
    chosen,
    distinct,
    quantile,
    sampled_tails,
    score,
    separate,
)
from .estimator import IntervalTarget, enough, honest_range
from .projective_supports import points_held
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
        return self.response.share(self.counts / self.n)

    @property
    def noise(self) -> ResponseDistribution:
        """The distribution of a report's support, with all that adds to its variance."""
        return self.response

    def error(self, target: IntervalTarget) -> Floats:
        return np.sqrt(self.noise.variance(self.points, sampled=target.sampled) / self.n)

    def interval(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        """Return score intervals; where counts are small, exact ones."""
        counts, alpha, places = distinct(self.counts, alpha)
        once = replace(self, counts=counts)
        ends = score(once.points, self.n, self.noise, quantile(alpha), sampled=target.sampled)
        few = once.few(alpha, target)
        if few.any():
            exact = replace(self, counts=counts[few]).of_few(chosen(alpha, few), target)
            for end, better in zip(ends, exact, strict=True):
                end[few] = better
        return ends[0][places], ends[1][places]

    def of_few(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        """Return the intervals that hold at any n."""
        if not self.response.binary:
            sampled = target.sampled
            return bernstein(self.points, self.n, self.response, alpha, sampled=sampled)
        tails = sampled_tails if target.sampled else cohort_tails
        return tails(self.counts, self.n, self.response, alpha)

    def few(self, alpha: Alpha, target: IntervalTarget) -> Bools:
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

    def rows(self, values: slice) -> SupportCounts:
        """Return the evidence on some of the values."""
        return replace(self, counts=self.counts[values])


@dataclass(frozen=True, slots=True, eq=False)
class GroupSums:
    """Groups of values under subset selection, each with its response distribution."""

    groups: tuple[SupportCounts, ...]

    @property
    def n(self) -> int:
        return self.groups[0].n

    @property
    def families(self) -> int:
        return len(self.groups)

    @property
    def points(self) -> Floats:
        return np.concatenate([group.points for group in self.groups])

    def error(self, target: IntervalTarget) -> Floats:
        """Return the standard errors, from the distribution of the whole group."""
        return np.concatenate([group.error(target) for group in self.groups])

    def interval(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        alphas = zip(self.groups, separate(alpha, len(self.groups)), strict=True)
        return _side_by_side([group.interval(own, target) for group, own in alphas])

    def few(self, alpha: Alpha, target: IntervalTarget) -> Bools:
        alphas = zip(self.groups, separate(alpha, len(self.groups)), strict=True)
        return np.concatenate([group.few(own, target) for group, own in alphas])

    def poisoned(self, fakes: float) -> Ends:
        return _side_by_side([group.poisoned(fakes) for group in self.groups])


def _side_by_side(group_ends: list[Ends]) -> Ends:
    return np.concatenate([low for low, _ in group_ends]), np.concatenate(
        [high for _, high in group_ends]
    )


@dataclass(frozen=True, slots=True, eq=False)
class CellSums:
    """How many of a group's points the reports' hyperplanes hold, cell by cell.

    Three points may lie on a line or not, so the variance of such a count has no formula and is
    estimated from the counters. Any hyperplane holds `least` to `most` of the points.

    Estimated together with the mean it falls with it, since most counts are 0. So an interval also
    holds the shares that the least variance at their own share does not exclude.
    """

    n: int
    sizes: Floats
    means: Floats
    variances: Floats  # of what one report counts, with its part of the covers'
    least: Floats
    most: Floats
    response: ResponseDistribution
    others: Floats  # the least variance of the count of one whose value is not in the group
    members: Floats  # and of one whose value is

    @classmethod
    def from_counters(
        cls,
        mechanism: ProjectiveGeometry,
        counters: Counts,
        groups: Sequence[Counts],
        covers: int = 0,
    ) -> CellSums:
        """Return the counts of groups of inputs.

        So many of the reports are a shuffler's covers: hyperplanes drawn from all.
        """
        n, response = int(counters.sum()) - covers, ResponseDistribution.from_mechanism(mechanism)
        rows = []
        for group in groups:
            count = points_held(mechanism, group)
            of_cover = len(group) * mechanism.support_size / mechanism.messages
            mean = (int(counters @ count) - covers * of_cover) / n
            square = float(counters @ count.astype(np.float64) ** 2) - covers * of_cover**2
            of_covers = covers / n * _spread(mechanism, len(group))
            noise = (noise + of_covers for noise in least_noises(mechanism, len(group)))
            reach = count.min(), count.max()
            rows.append((len(group), mean, square / n - mean**2, *reach, *noise))
        sizes, means, variances, least, most, others, members = np.array(rows, np.float64).T
        return cls(n, sizes, means, variances, least, most, response, others, members)

    @property
    def points(self) -> Floats:
        return self.share(self.means)

    @property
    def families(self) -> int:
        return len(self.sizes)

    def error(self, target: IntervalTarget) -> Floats:
        return np.sqrt(self._variances(target) / self.n) / self.response.gap

    def interval(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        """Return the intervals of the mean counts, mapped to shares."""
        reach, z = (self.least, self.most), quantile(alpha)
        ends = agresti_coull(self.means, self._variances(target), self.n, reach, z)
        low, high = self._score(z, target)
        return np.minimum(self.share(ends[0]), low), np.maximum(self.share(ends[1]), high)

    def _score(self, z: Alpha, target: IntervalTarget) -> Ends:
        ends = []
        rows = (self.points, self.others, self.members, np.broadcast_to(z, self.points.shape))
        for point, floor, end, own in zip(*rows, strict=True):
            noise = replace(self.response, floor=floor, slope=end - floor)
            ends.append(score(np.array([point]), self.n, noise, own, sampled=target.sampled))
        return _side_by_side(ends)

    def few(self, _alpha: Alpha, _target: IntervalTarget) -> Bools:
        """Further answers at the ends, z^2 of them, stand in for what small counts lack."""
        return np.zeros(len(self.sizes), np.bool_)

    def poisoned(self, fakes: float) -> Ends:
        """Return the range of the honest shares: a report counts what some hyperplane holds."""
        return honest_range(self.points, self.share(self.least), self.share(self.most), fakes)

    def share(self, counts: Floats) -> Floats:
        """Return the shares at which these mean counts are expected."""
        return (counts - self.sizes * self.response.Q) / self.response.gap

    def _variances(self, target: IntervalTarget) -> Floats:
        """Return the variance of one report's count; without the answers' own for a cohort."""
        share = np.clip(self.points, 0.0, 1.0)
        answers = self.response.gap**2 * share * (1 - share)
        least = share * self.members + (1 - share) * self.others
        noise = np.maximum(self.variances - answers, least)
        return noise + answers if target.sampled else noise


def least_noises(mechanism: ProjectiveGeometry, size: int) -> tuple[float, float]:
    """Return the least variances of how many of a group's points a report holds.

    A report is with some probability that of a plane drawn from all, whoever answers: this part of
    its variance stays. Else the plane is through the answer's point. Where that is not in the
    group, two of the group's points are on it the more rarely if the three are on no line.
    """
    v, r, s = mechanism.messages, mechanism.support_size, mechanism.pair_support_size
    uniform = float((1 - mechanism.P) * v / (v - r))
    any_plane, square = _spread(mechanism, size), (size * r / v) ** 2
    through = (size * s + size * (size - 1) * points(mechanism.q, mechanism.t - 3)) / r
    outside = uniform * (any_plane + square) + (1 - uniform) * through - (size * mechanism.Q) ** 2
    least = uniform * any_plane
    return max(float(outside), least), least


def _spread(mechanism: ProjectiveGeometry, size: int) -> float:
    """Return the variance of a count where a plane is drawn from all.

    There any two points share s of the v hyperplanes.
    """
    v, s = mechanism.messages, mechanism.pair_support_size
    mean = size * mechanism.support_size / v
    return mean + size * (size - 1) * s / v - mean**2


def margin(domain: Cross, part: str | None = None) -> Mapping[Label, Counts]:
    """Return for each label of a part of a crossed domain the inputs that have it.

    The part is an attribute's name, or none for the answer.
    """
    names = [None, *(name for name, _ in domain.attributes)]
    if part not in names:
        raise ValueError(f"{part!r} is no attribute: {', '.join(filter(None, names))}")
    place = names.index(part)
    below = int(np.prod([part.size for part in domain.parts[place + 1 :]], dtype=np.int64))
    labels = domain.parts[place].labels
    digits = np.arange(domain.size) // below % len(labels)
    return {label: np.flatnonzero(digits == digit) for digit, label in enumerate(labels)}
