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
the result stays an upper bound. What the transform itself could lose is added.
"""

from __future__ import annotations

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
FFT_ERROR = 1e-14  # far above the error of a transform of probabilities of this length
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
    report = BlanketReport.from_overlaps(overlaps, epsilon)
    mean = report.mean
    centred = report.values - mean
    largest = float(np.abs(centred).max())
    spread = sqrt(float(centred**2 @ report.weights))
    reach = min(REACH * spread * sqrt(reports) + MARGIN * largest, 1.01 * largest * reports)
    points = 1 << min(max(ceil(log2(2 * reach / (STEP * spread))), SMALLEST), LARGEST)
    step = 2 * reach / points
    powers, lost = _powers(_split(centred / step, report.weights, points), reports)
    ramp = _ramp(len(powers), points, step, reports * mean)
    twice = np.full(points // 2 + 1, 2.0)  # of two conjugate terms one is kept,
    twice[[0, -1]] = 1  # but the first and the last are their own
    expected = float((twice[: len(powers)] * powers * ramp.conj()).real.sum()) / points
    return max(expected, 0.0) / reports + lost * reach + TAIL * largest


def _split(places: Floats, weights: Floats, points: int) -> Floats:
    """Return the distribution on the grid, each value shared out between its neighbours."""
    below = np.floor(places).astype(np.int64)
    part = places - below
    probabilities = np.zeros(points)
    np.add.at(probabilities, below % points, weights * (1 - part))
    np.add.at(probabilities, (below + 1) % points, weights * part)
    return probabilities


def _powers(probabilities: Floats, reports: int) -> tuple[Transform, float]:
    """Return the transform of the sum, up to where only faint terms follow, and what is lost.

    An error of each coefficient becomes `reports` times as large in its power; a probability of the
    sum is the average of those, and a delta at most `reach / reports` times their sum.
    """
    transform = np.fft.rfft(probabilities)
    size = np.abs(transform)
    kept = int(np.flatnonzero(size > FAINT ** (1 / reports))[-1]) + 1
    powers = np.exp(reports * np.log(transform[:kept] + FAINT))
    lost = 2 * FFT_ERROR * float((size[:kept] ** (reports - 1)).sum())
    return powers, lost + FAINT * len(probabilities)


def _ramp(terms: int, points: int, step: float, shift: float) -> Transform:
    """Return the first terms of the transform of max(0, k step + shift), k < points / 2.

    A geometric sum and its derivative, from the first k that is above 0 on: no transform needed.
    """
    first, end = max(int(np.ceil(-shift / step)), 0), points // 2
    if first >= end:
        return np.zeros(terms, np.complex128)
    places = np.arange(first, end)
    whole = np.array([(places * step + shift).sum()])
    turns = np.arange(1, terms)
    z = np.exp(-2j * np.pi * turns / points)
    start, stop = (np.exp(-2j * np.pi * (turns * k % points) / points) for k in (first, end))
    ones = (start - stop) / (1 - z)
    counts = (first * start - end * stop + z * ones) / (1 - z)
    return np.concatenate([whole, step * counts + shift * ones])
