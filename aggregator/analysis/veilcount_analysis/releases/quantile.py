"""Quantiles of a number, from a histogram that is already released: free.

The p-quantile of n answers is the least number v with at least p n answers up to it. With

    T(v) = (1 - p) (answers up to v) - p (answers above v)

that is the least v with T(v) >= 0, whatever n. A noised T(v) is off by a weighted sum of the
histogram's noises; Chernoff's bound with the exact moments of their distribution limits it. A
number is kept unless its own T, or that of the number before, contradicts it. Only these two T can
drop the true quantile, and they do with probability 1 - level at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .noise import noise_distribution
from .noise_kinds import NoiseDistribution
from .release import LEVEL, Release

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ReleasedQuantile:
    """A number at or below which a share of the answers lies, and its interval."""

    share: Fraction
    value: int
    low: int
    high: int
    level: float


def quantile(release: Release, share: Fraction, level: float = LEVEL) -> ReleasedQuantile:
    """Return a quantile of a number's released histogram, 1/2 for the median."""
    numbers = np.array(release.labels)
    if release.kind != "histogram" or numbers.dtype.kind != "i":
        raise ValueError("a quantile is read from the histogram of a number")
    if not 0 < share < 1:
        raise ValueError(f"share = {share}: give a fraction between 0 and 1")
    order = np.argsort(numbers)
    up_to = np.cumsum(np.array(release.noised[0])[order])
    a, b = share.numerator, share.denominator
    statistic = b * up_to - a * up_to[-1]  # whole numbers: b T
    distribution = noise_distribution(release.noise[0].distribution, release.noise[0].scale)
    reach = b * _reach(distribution, len(numbers), float(share), (1 - level) / 2)
    place, low, high = crossing(statistic, reach)
    value, least, most = (int(numbers[order[rank]]) for rank in (place, low, high))
    return ReleasedQuantile(share, value, least, most, level)


def _reach(distribution: NoiseDistribution, size: int, p: float, alpha: float) -> Floats:
    """Return for each place how far T's noise goes to either side, but with probability alpha.

    For any t, P(noise >= b) <= exp(M(t) - t b) with M the log moment of the weighted sum; the best
    of a row of t is taken, each of which holds.
    """
    places = np.arange(size)
    best = np.full(size, np.inf)
    for t in np.geomspace(1e-3, 1, 100) * distribution.largest_t / max(p, 1 - p):
        at_or_below, above = distribution.log_moment((1 - p) * t), distribution.log_moment(p * t)
        moment = (places + 1) * at_or_below + (size - 1 - places) * above
        best = np.minimum(best, (moment - np.log(alpha)) / t)
    return best


def crossing(above: NDArray[Any], reach: NDArray[Any]) -> tuple[int, int, int]:
    """Return the place where T turns positive, and the first and the last that is possible.

    `reach` is how far each T's noise goes. A place is possible unless its own T, or that of the
    place before, contradicts it; only these two T can drop the true one. The place itself is where
    the nearest ascending T, midway between the largest so far and the least to come, is not below
    0. If T ends below 0, no answers are left under the noise.
    """
    if above[-1] < 0:
        return len(above) // 2, 0, len(above) - 1
    rising = np.maximum.accumulate(above) + np.minimum.accumulate(above[::-1])[::-1]
    place = int(np.argmax(rising >= 0))
    before, reach_before = np.append(-1, above[:-1]), np.append(0, reach[:-1])
    near = np.flatnonzero((above >= -reach) & (before < reach_before))
    return place, int(min(near.min(initial=place), place)), int(max(near.max(initial=place), place))
