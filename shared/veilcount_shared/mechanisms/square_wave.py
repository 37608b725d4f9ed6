"""The square wave: the set of an input, a start, is the W consecutive levels from it, out of M.

`DistributionMechanism` is the discrete one [LWLS20]: 256 buckets, each the start of a window.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..domain import GRID_BITS
from ..epsilon import exp_lower, satisfies, threshold
from ..errors import EpsilonError
from ..randomness import WORDS, RandomSource
from .interface import NumberedMessages

BUCKET_BITS = 8
BUCKETS = 1 << BUCKET_BITS


@dataclass(frozen=True, slots=True)
class SquareWave(NumberedMessages):
    """One configuration: M levels, windows of W, P = a / 2^64."""

    levels: int
    width: int
    a: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        if not satisfies(self.a, self.epsilon, self.width, self.levels):
            raise EpsilonError(
                self.epsilon, f"window M={self.levels} W={self.width} a={self.a} exceeds it"
            )

    @classmethod
    def for_epsilon(cls, epsilon: Fraction, levels: int, width: int) -> SquareWave:
        """Return the configuration that uses all of epsilon."""
        return cls(levels, width, threshold(epsilon, width, levels), epsilon)

    @property
    def inputs(self) -> int:
        return self.levels - self.width + 1

    @property
    def messages(self) -> int:
        return self.levels

    @property
    def P(self) -> Fraction:
        """The probability that a report's level lies in the window."""
        return Fraction(self.a, WORDS)

    @property
    def transition_matrix(self) -> tuple[tuple[Fraction, ...], ...]:
        """The exact probability of each level, for each start."""
        inside = self.P / self.width
        outside = (1 - self.P) / (self.levels - self.width)
        return tuple(
            tuple(
                inside if start <= level < start + self.width else outside
                for level in range(self.levels)
            )
            for start in range(self.inputs)
        )

    def randomize(self, start: int, randomness: RandomSource) -> int:
        """Return the message of a start."""
        if randomness.bernoulli(self.a):
            return start + randomness.below(self.width)
        other = randomness.below(self.levels - self.width)
        return other if other < start else other + self.width

    def cover(self, randomness: RandomSource) -> int:
        """Return a uniform level: one end's window misses it, if no window is over half of them."""
        return randomness.below(self.levels)

    def canonical(self) -> dict[str, Any]:
        return {"design": "window", "M": self.levels, "W": self.width, "a": str(self.a)}


@dataclass(frozen=True, slots=True)
class SquareWaveMechanism(NumberedMessages):
    """A mechanism for numbers whose messages are the levels of a square wave."""

    window: SquareWave

    @property
    def inputs(self) -> int:
        return self.window.inputs

    @property
    def messages(self) -> int:
        return self.window.levels

    @property
    def epsilon(self) -> Fraction:
        return self.window.epsilon

    @property
    def P(self) -> Fraction:
        """The probability that a report's level lies in the window."""
        return self.window.P

    @property
    def transition_matrix(self) -> tuple[tuple[Fraction, ...], ...]:
        """The exact probability of each level, for each start."""
        return self.window.transition_matrix

    def cover(self, randomness: RandomSource) -> int:
        """Return a uniform level."""
        return self.window.cover(randomness)

    def describe(self) -> str:
        return (
            f"lies in the true value's window of {self.window.width} of {self.messages} levels"
            f" with probability {float(self.P):.6f}"
        )


def find_bucket(grid: int) -> int:
    """Return the bucket of a grid point; the upper end belongs to the last."""
    return min(grid >> GRID_BITS - BUCKET_BITS, BUCKETS - 1)


@dataclass(frozen=True, slots=True)
class DistributionMechanism(SquareWaveMechanism):
    """The square wave over 256 buckets of the range."""

    def __post_init__(self) -> None:
        """Refuse a window with other starts than the buckets."""
        if self.window.inputs != BUCKETS:
            raise ValueError(f"the window has {self.window.inputs} starts, not {BUCKETS}")

    @classmethod
    def for_epsilon(cls, epsilon: Fraction) -> DistributionMechanism:
        """Return the half-width b that keeps most information, W = 2b + 1 [LWLS20, sec. 5.3]."""
        e = exp_lower(epsilon)
        b = int(BUCKETS * (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon)))
        return cls(SquareWave.for_epsilon(epsilon, BUCKETS + 2 * b, 2 * b + 1))

    def randomize(self, grid: int, randomness: RandomSource) -> int:
        """Return the message of a point of the number's grid."""
        return self.window.randomize(find_bucket(grid), randomness)

    def canonical(self) -> dict[str, Any]:
        return {**self.window.canonical(), "design": "distribution", "buckets": BUCKETS}
