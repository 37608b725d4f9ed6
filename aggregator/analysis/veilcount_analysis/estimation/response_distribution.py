"""The distribution of what one report counts for a share, as the floats nearest to the exact one.

Exactness ends here: the distribution is computed in fractions and rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.mechanisms import SubsetSelection

Floats = NDArray[np.float64]


class SupportMechanism(Protocol):
    """A mechanism whose reports support values."""

    @property
    def P(self) -> Fraction:
        """The probability that a report supports its own value."""

    @property
    def Q(self) -> Fraction:
        """The probability that a report supports a given other value."""


@dataclass(frozen=True, slots=True)
class ResponseDistribution:
    """A report counts P on average for those of a share, Q for all others.

    Its variance is `floor` for the others and `floor + slope` for those; it counts `least` to
    `most`. Of a single value a report counts 0 or 1, with the mechanism's P and Q.
    """

    P: float
    Q: float
    gap: float
    floor: float
    slope: float
    least: float = 0
    most: float = 1

    @classmethod
    def from_mechanism(cls, mechanism: SupportMechanism) -> ResponseDistribution:
        """Return the distribution for a single value."""
        return cls.from_probabilities(mechanism.P, mechanism.Q)

    @classmethod
    def from_probabilities(cls, P: Fraction, Q: Fraction) -> ResponseDistribution:
        """Return the distribution of a report that counts 0 or 1."""
        return cls.from_moments((P, P * (1 - P)), (Q, Q * (1 - Q)), 0, 1)

    @classmethod
    def from_moments(
        cls,
        held: tuple[Fraction, Fraction],
        others: tuple[Fraction, Fraction],
        least: int,
        most: int,
    ) -> ResponseDistribution:
        """Return the distribution with these means and variances."""
        (P, held_variance), (Q, floor) = held, others
        slope = held_variance - floor
        return cls(float(P), float(Q), float(P - Q), float(floor), float(slope), least, most)

    def diluted(
        self, part: float, mean: float, variance: float | None = None
    ) -> ResponseDistribution:
        """Return that of a report of which this part are as before.

        Any other counts with this mean and variance, whatever the share is; None: it counts 0 or 1.
        """
        spread = mean * (1 - mean) if variance is None else variance
        (held, P), (floor, Q) = (
            _mixed(part, (own, count), (spread, mean))
            for own, count in ((self.floor + self.slope, self.P), (self.floor, self.Q))
        )
        return replace(self, P=P, Q=Q, gap=part * self.gap, floor=floor, slope=held - floor)

    @property
    def binary(self) -> bool:
        """Whether a report counts 0 or 1: then the distribution of all reports is known exactly."""
        return (self.least, self.most) == (0, 1)

    def share(self, mean: Floats) -> Floats:
        """Return the share at which this mean count is expected."""
        return (mean - self.Q) / self.gap

    def variance(self, share: Floats, *, sampled: bool) -> Floats:
        """Return n times the variance of a share; if sampled, the persons vary too."""
        true_share = np.clip(share, 0.0, 1.0)
        sampling = self.gap**2 * true_share * (1 - true_share) if sampled else 0.0
        return (self.floor + self.slope * true_share + sampling) / self.gap**2


def _mixed(
    part: float, one: tuple[float, float], other: tuple[float, float]
) -> tuple[float, float]:
    """Return variance and mean of what has one distribution with this probability, or another."""
    mean = part * one[1] + (1 - part) * other[1]
    square = part * (one[0] + one[1] ** 2) + (1 - part) * (other[0] + other[1] ** 2)
    return square - mean**2, mean


def group_response(mechanism: SubsetSelection, size: int) -> ResponseDistribution:
    """Return the distribution of how many of a group of values a reported subset holds.

    Its own input is there or not; the rest, w - 1 or w of the k - 1 other inputs, are drawn without
    replacement, so those of the group among them are hypergeometric.
    """
    if mechanism.w == 1:  # a report holds one input, in the group or not
        return ResponseDistribution.from_probabilities(
            mechanism.P + (size - 1) * mechanism.Q, size * mechanism.Q
        )
    least, most = max(0, mechanism.w - (mechanism.k - size)), min(mechanism.w, size)
    if size == mechanism.k:  # every report holds w of all
        all_held, none = Fraction(mechanism.w), Fraction(0)
        return ResponseDistribution.from_moments(
            (all_held, none), (all_held - mechanism.P + mechanism.Q, none), least, most
        )
    inside, outside = _moments(mechanism, size - 1, own=True), _moments(mechanism, size, own=False)
    return ResponseDistribution.from_moments(inside, outside, least, most)


def group_of_cover(mechanism: SubsetSelection, size: int) -> tuple[float, float]:
    """Return mean and variance of how many of a group of values a uniform subset holds."""
    mean, variance = _drawn(mechanism.k, size, mechanism.w)
    return float(mean), float(variance)


def _moments(mechanism: SubsetSelection, others: int, *, own: bool) -> tuple[Fraction, Fraction]:
    """Return mean and variance of how many of a group a report holds; `own`: its input too."""
    hit, miss = (_drawn(mechanism.k - 1, others, mechanism.w - is_hit) for is_hit in (1, 0))
    hit_mean = hit[0] + own  # the input itself is in the set
    mean = mechanism.P * hit_mean + (1 - mechanism.P) * miss[0]
    square = mechanism.P * (hit[1] + hit_mean**2) + (1 - mechanism.P) * (miss[1] + miss[0] ** 2)
    return mean, square - mean**2


def _drawn(inputs: int, marked: int, drawn: int) -> tuple[Fraction, Fraction]:
    """Return mean and variance of the marked ones among some drawn without replacement."""
    share = Fraction(marked, inputs)
    mean = drawn * share
    return mean, mean * (1 - share) * Fraction(inputs - drawn, max(inputs - 1, 1))
