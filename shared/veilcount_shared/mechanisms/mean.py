"""The mean mechanism: a square wave over a few levels with values chosen for low variance.

The device rounds the number, exactly and without bias, to one of the window's starts and reports a
level of that window; the server averages the levels' decoded values. Every table below is unbiased
for every epsilon and its privacy depends on (M, W, a) alone, so the table only decides the
variance: the definition takes the one whose worst variance is least at its own epsilon, found in
exact arithmetic.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

from ..domain import GRID
from ..randomness import WORDS, RandomSource
from .square_wave import SquareWave, SquareWaveMechanism

#: (M, W, the upper half of the antisymmetric levels; an odd M has 0 in the middle), each found by
#: minimizing the worst variance at one epsilon from 0.1 to 8. Part of the protocol.
TABLES: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (16, 8, (9184, 9294, 9408, 9525, 9643, 9763, 9882, 10000)),  # 0.1
    (16, 8, (8060, 8307, 8568, 8839, 9118, 9406, 9701, 10000)),  # 0.25
    (16, 8, (6509, 6924, 7361, 7825, 8317, 8845, 9398, 10000)),  # 0.5
    (16, 8, (5323, 5844, 6379, 6980, 7629, 8350, 9120, 10000)),  # 0.75
    (15, 7, (0, 6430, 6677, 7485, 8559, 9658, 9982, 10000)),  # 1
    (16, 7, (2, 7105, 7303, 8378, 9755, 9998, 9999, 10000)),  # 1.25
    (14, 6, (169, 6473, 7166, 8782, 9826, 9842, 10000)),  # 1.5
    (15, 6, (0, 1101, 7086, 8045, 9294, 9296, 9298, 10000)),  # 1.75
    (13, 5, (0, 1771, 7330, 8684, 9017, 9039, 10000)),  # 2
    (14, 5, (866, 3155, 7569, 7814, 8382, 9253, 10000)),  # 2.5
    (15, 5, (0, 1937, 3842, 6961, 7385, 8464, 9180, 10000)),  # 3
    (14, 4, (1621, 3547, 5237, 7962, 8600, 9079, 10000)),  # 3.5
    (16, 4, (788, 3253, 4827, 6305, 8288, 8775, 9352, 10000)),  # 4
    (13, 3, (0, 2268, 4451, 6223, 8101, 9046, 10000)),  # 4.5
    (11, 2, (0, 2725, 5256, 7408, 9030, 10000)),  # 5
    (15, 2, (0, 1954, 3838, 5580, 7121, 8398, 9372, 10000)),  # 6
    (13, 1, (0, 2232, 4359, 6282, 7911, 9170, 10000)),  # 7
    (16, 1, (821, 2445, 4018, 5504, 6873, 8096, 9145, 10000)),  # 8
)


@dataclass(frozen=True, slots=True)
class MeanMechanism(SquareWaveMechanism):
    """A window and the values of its levels."""

    values: tuple[int, ...]
    _ends: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse values whose starts' means do not ascend: they could not be rounded between."""
        if len(self.values) != self.window.levels:
            raise ValueError(f"{len(self.values)} values for {self.window.levels} levels")
        if any(one >= two for one, two in pairwise(self.means)):
            raise ValueError("the means of the starts do not ascend")
        object.__setattr__(self, "_ends", self._grid_ends())

    @classmethod
    def for_epsilon(cls, epsilon: Fraction) -> MeanMechanism:
        """Return the table with the least worst variance at this epsilon."""
        return _best(epsilon)

    @property
    def means(self) -> tuple[Fraction, ...]:
        """Return the mean value of the level reported for each start, ascending."""
        return self._moments(self.values)

    @property
    def decoded(self) -> tuple[Fraction, ...]:
        """Return the estimate of each level, 0 for low and 1 for high, unbiased."""
        low, high = self.means[0], self.means[-1]
        return tuple((value - low) / (high - low) for value in self.values)

    @property
    def variance(self) -> Fraction:
        """The worst variance of one decoded report over all numbers, for the range [-1, 1].

        Between two starts the second moment is linear in the number and its square is subtracted: a
        concave parabola, whose top is at half the slope if that lies between them, else at an end.
        """
        means, seconds = self.means, self._moments(tuple(value * value for value in self.values))
        half = (means[-1] - means[0]) / 2
        points = list(zip(means, seconds, strict=True))
        worst = max(_top(one, two) for one, two in pairwise(points))
        return worst / half**2

    def randomize(self, grid: int, randomness: RandomSource) -> int:
        """Return the message of a point of the number's grid."""
        return self.window.randomize(self.start(grid, randomness), randomness)

    def start(self, grid: int, randomness: RandomSource) -> int:
        """Round the grid point to a start: up with exactly the probability that keeps the mean."""
        ends = self._ends
        place = grid * (ends[-1] // GRID)
        start = min(bisect_right(ends, place), len(ends) - 1) - 1
        return start + randomness.bernoulli(place - ends[start], ends[start + 1] - ends[start])

    def canonical(self) -> dict[str, Any]:
        return {**self.window.canonical(), "design": "mean", "values": list(self.values)}

    def tables(self) -> dict[str, Any]:
        return {**SquareWaveMechanism.tables(self), "starts": [str(end) for end in self._ends]}

    def _grid_ends(self) -> tuple[int, ...]:
        """Return where the starts stand on the grid, as integers: the unit is the means' own.

        Start s stands at (mean[s] - mean[0]) / (mean[-1] - mean[0]) of the range, and every mean
        is a multiple of 1 / (2^64 W (M - W)).
        """
        window, means = self.window, self.means
        unit = WORDS * window.width * (window.levels - window.width)
        return tuple(int((mean - means[0]) * unit) * GRID for mean in means)

    def _moments(self, values: tuple[int, ...]) -> tuple[Fraction, ...]:
        """Return the expectation of a function of the level, for each start."""
        window, total = self.window, sum(values)
        outside = window.levels - window.width
        moments = []
        for start in range(window.inputs):
            inside = sum(values[start : start + window.width])
            moments.append(
                window.P * Fraction(inside, window.width)
                + (1 - window.P) * Fraction(total - inside, outside)
            )
        return tuple(moments)


def _top(one: tuple[Fraction, Fraction], two: tuple[Fraction, Fraction]) -> Fraction:
    """Return the largest second moment - mean^2 between two starts, each (mean, second moment)."""
    (mean_one, second_one), (mean_two, second_two) = one, two
    slope = (second_two - second_one) / (mean_two - mean_one)
    mean = min(max(slope / 2, mean_one), mean_two)
    return second_one + slope * (mean - mean_one) - mean * mean


@lru_cache(maxsize=256)
def _best(epsilon: Fraction) -> MeanMechanism:
    candidates = []
    for levels, width, half in TABLES:
        values = (*(-value for value in reversed(half) if value or levels % 2 == 0), *half)
        candidates.append(MeanMechanism(SquareWave.for_epsilon(epsilon, levels, width), values))
    return min(candidates, key=lambda mean: mean.variance)
