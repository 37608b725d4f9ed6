"""Moments of several numbers: each device reports one drawn product of two of them.

From the means of x_i and of x_i x_j follow variances, covariances, correlations and linear
regression. The device draws one of these moments, whatever its numbers are, and reports it by the
mean mechanism at full epsilon. A message names its moment, so its probability is that of the mean
mechanism divided by the number of moments, for all numbers alike: the whole keeps epsilon exactly.

Each number is a point of the grid of its range, which stands for [-1, 1]; so does a product. A
square is never below 0: its point is that of [0, 1], so that its noise is half as large.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

from ..domain import GRID
from ..randomness import RandomSource
from .interface import NumberedMessages
from .mean import MeanMechanism


def product_point(one: int, two: int) -> int:
    """Return the point of a product: x = 2 point / GRID - 1, rounded to the nearest."""
    return ((2 * one - GRID) * (2 * two - GRID) + GRID * GRID + GRID) // (2 * GRID)


def square_point(number: int) -> int:
    """Return the point of a square: x^2 = point / GRID, rounded to the nearest."""
    return ((2 * number - GRID) ** 2 + GRID // 2) // GRID


@dataclass(frozen=True, slots=True)
class Moments(NumberedMessages):
    """The mean mechanism of one moment; message m of moment k is number k * levels + m.

    An input is one number with the point of each feature as a digit, the first feature the highest.
    """

    mean: MeanMechanism
    features: int

    @classmethod
    def for_epsilon(cls, epsilon: Fraction, features: int) -> Moments:
        """Return the mean mechanism with the least variance at this epsilon."""
        return cls(MeanMechanism.for_epsilon(epsilon), features)

    @property
    def moments(self) -> tuple[tuple[int, ...], ...]:
        """The features of each moment: one alone, or two, the same twice for its square."""
        return _moments(self.features)

    @property
    def inputs(self) -> int:
        """Moment and start: what a device reports once it has drawn and rounded."""
        return len(self.moments) * self.mean.window.inputs

    @property
    def levels(self) -> int:
        """The number of messages of one moment."""
        return self.mean.messages

    @property
    def messages(self) -> int:
        return len(self.moments) * self.levels

    @property
    def epsilon(self) -> Fraction:
        return self.mean.epsilon

    def point(self, x: int, moment: int) -> int:
        """Return the point of the grid that a moment of the numbers stands at."""
        first, *second = self.moments[moment]
        if not second:
            return self.digit(x, first)
        if second == [first]:
            return square_point(self.digit(x, first))
        return product_point(self.digit(x, first), self.digit(x, *second))

    def digit(self, x: int, feature: int) -> int:
        """Return the point of one feature."""
        above: int = (GRID + 1) ** (self.features - 1 - feature)
        return x // above % (GRID + 1)

    def randomize(self, x: int, randomness: RandomSource) -> int:
        """Return the message of the points of all features."""
        moment = randomness.below(len(self.moments))
        return moment * self.levels + self.mean.randomize(self.point(x, moment), randomness)

    def cover(self, randomness: RandomSource) -> int:
        """Return a cover of a moment that is drawn as a device draws it."""
        moment = randomness.below(len(self.moments))
        return moment * self.levels + self.mean.cover(randomness)

    def describe(self) -> str:
        return (
            f"reports one of {len(self.moments)} moments of {self.features} numbers, drawn: by the"
            " randomizer of a mean"
        )

    def canonical(self) -> dict[str, Any]:
        mean = self.mean.canonical()
        return {"design": "moments", "features": self.features, "squares": "unit", "mean": mean}

    def tables(self) -> dict[str, Any]:
        moments = [list(features) for features in self.moments]
        return {**NumberedMessages.tables(self), "moments": moments, "mean": self.mean.tables()}


@lru_cache(maxsize=16)
def _moments(features: int) -> tuple[tuple[int, ...], ...]:
    every = range(features)
    return tuple((feature,) for feature in every) + tuple(combinations_with_replacement(every, 2))
