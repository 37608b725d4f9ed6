"""The privacy blanket [BBGN19]: a bound for two-level mechanisms, tighter than the general one.

A share of all reports, the blanket, is a uniform message whatever its input. By [BBGN19, Lemma 5.3]

    delta(eps)  <=  E[ max(0, W_1 + ... + W_n) ] / n

where a report is in the blanket with probability gamma, else its W is 0, and W compares its uniform
message y under the two inputs: (Pr[y|x] - e^eps Pr[y|x']) / (gamma / M). With the ratio E of a
mechanism that takes four values: E - e^eps where only x owns y, 1 - e^eps E where only x' does,
-(e^eps - 1) E where both do, 1 - e^eps where neither does. Inputs that overlap more move W's mass
inward around the same mean, so the pair that overlaps least bounds every pair (convex order).
Where a report draws one of several mechanisms and names it, W is drawn along with it.

The distribution of the sum is computed by a Fourier transform on a grid. Each value is split
between its two neighbours on the grid so that its mean is kept: that spreads W in convex order, so
the result stays an upper bound. W takes few values, so each coefficient is a short sum, and only
the low frequencies matter. What the transform itself could lose is added.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, log2, sqrt

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.composition import Overlap

REACH = 10  # standard deviations of the sum on either side of its mean,
MARGIN = 40  # and largest values further; what lies outside has
TAIL = 1e-20  # at most this probability, by Bernstein's inequality
STEP = 0.1  # of a report's standard deviation: the split then adds under 0.3 % of variance
SMALLEST, LARGEST = 12, 19  # grids have 2^12 to 2^19 points; a coarser one is a looser bound
ERROR = 1e-14  # far above that of a coefficient: a few terms of probabilities
FAINT = 1e-30  # powers below it are left out, and counted as lost

Floats = NDArray[np.float64]
Transform = NDArray[np.complex128]


@dataclass(frozen=True, slots=True)
class BlanketReport:
    """The distribution of W, one report's share in the sum. Exactness ends here."""

    values: Floats
    weights: Floats

    @classmethod
    def from_overlaps(cls, overlaps: Sequence[Overlap], epsilon: float) -> BlanketReport:
        """Return the values and their probabilities: five for each overlap, equally likely."""
        e = exp(epsilon)
        values, weights = [], []
        for overlap in overlaps:
            ratio, inside = float(overlap.ratio), float(overlap.blanket)
            alone, both = float(overlap.alone), float(overlap.own - overlap.alone)
            neither = float(1 - overlap.own - overlap.alone)
            values += [0.0, ratio - e, 1 - ratio * e, -(e - 1) * ratio, -(e - 1)]
            weights += [1 - inside, *(inside * share for share in (alone, alone, both, neither))]
        return cls(np.array(values), np.array(weights) / len(overlaps))

    @property
    def mean(self) -> float:
        """Its expectation: never above 0."""
        return float(self.values @ self.weights)


def blanket_delta(overlaps: Sequence[Overlap], reports: int, epsilon: float) -> float:
    """Return an upper bound on delta at this epsilon."""
    if exp(epsilon) >= max(overlap.ratio for overlap in overlaps):
        return 0.0
    return mean_excess(BlanketReport.from_overlaps(overlaps, epsilon), reports)


def mean_excess(report: BlanketReport, reports: int) -> float:
    """Return an upper bound of E[max(0, W_1 + ... + W_n)] / n."""
    mean = report.mean
    centred = report.values - mean
    largest = float(np.abs(centred).max())
    spread = sqrt(float(centred**2 @ report.weights))
    reach = min(REACH * spread * sqrt(reports) + MARGIN * largest, 1.01 * largest * reports)
    points = 1 << min(max(ceil(log2(2 * reach / (STEP * spread))), SMALLEST), LARGEST)
    step = 2 * reach / points
    powers, lost = _powers(GridValues.split(centred / step, report.weights, points), reports)
    ramp = _ramp(len(powers), points, step, reports * mean)
    twice = np.full(points // 2 + 1, 2.0)  # rfft keeps one of each conjugate pair
    twice[[0, -1]] = 1  # DC and Nyquist count once
    expected = float((twice[: len(powers)] * powers * ramp.conj()).real.sum()) / points
    return max(expected, 0.0) / reports + lost * reach + TAIL * largest


@dataclass(frozen=True, slots=True)
class GridValues:
    """A distribution of few values, each shared out between its two neighbours on a grid."""

    points: int
    places: Floats  # the lower neighbours, and the upper ones
    weights: Floats

    @classmethod
    def split(cls, values: Floats, weights: Floats, points: int) -> GridValues:
        """Return the distribution on the grid that keeps each value's mean."""
        lower = np.floor(values)
        part = values - lower
        shares = np.stack([weights * (1 - part), weights * part])
        return cls(points, np.stack([lower, lower + 1]), shares)

    def transform(self, terms: int) -> Transform:
        """Return its first coefficients: few of them each as the short sum that it is."""
        places, weights = self.places.ravel() % self.points, self.weights.ravel()
        if terms * len(places) > self.points:
            dense = np.bincount(places.astype(np.int64), weights, self.points)
            return np.fft.rfft(dense)[:terms]
        angles = np.arange(terms)[:, None] * places % self.points
        turned: Transform = np.exp(-2j * np.pi / self.points * angles)
        return turned @ weights

    def terms_above(self, size: float) -> int:
        """Return a number of coefficients such that all that follow are smaller in size.

        The bound of `_alone` falls, so it holds from its first term below `size` on. The one of
        `_by_moments` falls and then rises: if it holds there, it holds from its own first term on.
        """
        high = bisect_left(range(self.points // 2 + 1), True, key=lambda at: self._alone(at) < size)
        if self._by_moments(high) >= size**2:
            return high
        return bisect_left(range(high), True, key=lambda at: self._by_moments(at) < size**2)

    def _alone(self, term: int) -> float:
        """Return a bound of a coefficient: no value makes up for another."""
        lower, upper = self.weights
        turned = 2 * lower * upper * np.cos(2 * np.pi * term / self.points)
        return float(np.sqrt(lower**2 + upper**2 + turned).sum())

    def _by_moments(self, term: int) -> float:
        """Return a bound of a coefficient's square, E cos(t D), D the difference of two draws.

        For cos x <= 1 - x^2 / 2 + x^4 / 24.
        """
        second, fourth = (float((self.places**k * self.weights).sum()) for k in (2, 4))
        turn = (2 * np.pi * term / self.points) ** 2
        return 1 - turn * second + turn**2 * (fourth + 3 * second**2) / 12


def _powers(report: GridValues, reports: int) -> tuple[Transform, float]:
    """Return the transform of the sum, up to where only faint terms follow, and what is lost.

    An error of each coefficient becomes `reports` times as large in its power; a probability of the
    sum is the average of those, and a delta at most `reach / reports` times their sum.
    """
    transform = report.transform(report.terms_above(FAINT ** (1 / reports)))
    powers = np.exp(reports * np.log(transform + FAINT))
    lost = 2 * ERROR * float((np.abs(transform) ** (reports - 1)).sum())
    return powers, lost + FAINT * report.points


def _ramp(terms: int, points: int, step: float, shift: float) -> Transform:
    """Return the first terms of the transform of max(0, k step + shift), k < points / 2.

    A geometric sum and its derivative, from the first k that is above 0 on: no transform needed.
    """
    first, end = max(int(np.ceil(-shift / step)), 0), points // 2
    if first >= end:
        return np.zeros(terms, np.complex128)
    whole = np.array([(end - first) * (step * (first + end - 1) / 2 + shift)])
    turns = np.arange(1, terms)
    z = np.exp(-2j * np.pi * turns / points)
    start, stop = (np.exp(-2j * np.pi * (turns * k % points) / points) for k in (first, end))
    ones = (start - stop) / (1 - z)
    counts = (first * start - end * stop + z * ones) / (1 - z)
    return np.concatenate([whole, step * counts + shift * ones])
