"""Sums over groups of values, such as all dark themes, or all other brands.

Unbiased like the shares they add up, with the variance of the sum itself: supports of two values
are not independent, so errors of shares do not add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from veilcount_shared.domain import Cross, Label
from veilcount_shared.mechanisms import ProjectiveGeometry

from .confidence_intervals import Bools, Counts, Ends, Floats, quantile
from .estimator import IntervalTarget, honest_range
from .mean import agresti_coull
from .projective_supports import points_held
from .response_distribution import ResponseDistribution


@dataclass(frozen=True, slots=True, eq=False)
class CellSums:
    """How many of a group's points the reports' hyperplanes hold, cell by cell.

    Three points may lie on a line or not, so the variance of such a count has no formula and is
    estimated from the counters. Any hyperplane holds `least` to `most` of the points.
    """

    n: int
    sizes: Floats
    means: Floats
    squares: Floats
    least: Floats
    most: Floats
    response: ResponseDistribution
    floor: Floats

    @classmethod
    def from_counters(
        cls, mechanism: ProjectiveGeometry, counters: Counts, groups: Sequence[Counts]
    ) -> CellSums:
        """Return the counts of groups of inputs."""
        n, response = int(counters.sum()), ResponseDistribution.from_mechanism(mechanism)
        rows = []
        for each in groups:
            count = points_held(mechanism, each)
            square = float(counters @ count.astype(np.float64) ** 2) / n
            mean = int(counters @ count) / n
            rows.append(
                (len(each), mean, square, count.min(), count.max(), _spread(mechanism, each))
            )
        sizes, means, squares, least, most, floor = np.array(rows, np.float64).T
        return cls(n, sizes, means, squares, least, most, response, floor)

    @property
    def points(self) -> Floats:
        """The unbiased shares of the groups."""
        return self.share(self.means)

    @property
    def families(self) -> int:
        """Each group is a figure."""
        return len(self.sizes)

    def error(self, target: IntervalTarget) -> Floats:
        """Return the standard errors."""
        return np.sqrt(self._variances(target) / self.n) / self.response.gap

    def interval(self, alpha: float, target: IntervalTarget) -> Ends:
        """Return the intervals of the mean counts, mapped to shares."""
        reach = (self.least, self.most)
        ends = agresti_coull(self.means, self._variances(target), self.n, reach, quantile(alpha))
        return self.share(ends[0]), self.share(ends[1])

    def few(self, _alpha: float, _target: IntervalTarget) -> Bools:
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
        variances = self.squares - self.means**2
        if target.sampled:
            return variances
        share = np.clip(self.points, 0.0, 1.0)
        return np.maximum(variances - self.response.gap**2 * share * (1 - share), self.floor)


def _spread(mechanism: ProjectiveGeometry, members: Counts) -> float:
    """Return the least variance of a count, whoever answers.

    A report is with some probability that of a plane drawn from all, and there any two points share
    s of the v hyperplanes; whatever else it is, this part of its variance stays.
    """
    v, r, s, size = (
        mechanism.messages,
        mechanism.support_size,
        mechanism.pair_support_size,
        len(members),
    )
    uniform = (1 - mechanism.P) * v / (v - r)
    mean = size * r / v
    return float(uniform) * (mean + size * (size - 1) * s / v - mean**2)


def margin(domain: Cross, part: str | None = None) -> Mapping[Label, Counts]:
    """Return for each label of a part of a crossed domain the inputs that have it.

    The part is an attribute's name, or none for the answer.
    """
    names = [None, *(name for name, _ in domain.attributes)]
    if part not in names:
        raise ValueError(f"{part!r} is no attribute: {', '.join(filter(None, names))}")
    place = names.index(part)
    below = int(np.prod([each.size for each in domain.parts[place + 1 :]], dtype=np.int64))
    labels = domain.parts[place].labels
    digits = np.arange(domain.size) // below % len(labels)
    return {label: np.flatnonzero(digits == digit) for digit, label in enumerate(labels)}
