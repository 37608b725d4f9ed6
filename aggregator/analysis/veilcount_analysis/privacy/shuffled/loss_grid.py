"""Privacy losses on a grid, rounded up, and their sum over batches [KJH20, Meiser and Mohammadi].

A distribution of losses dominates a batch if its delta is at least the batch's at every epsilon.
Then the sum of T independent losses dominates T batches. Where the two counts of a batch are
summed exactly, its losses are rounded up to the grid; else the losses are those whose delta is the
straight line, in e^epsilon, between points of the batch's own [DGKKM22]: delta is convex there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, exp, log

import numpy as np
from numpy.typing import NDArray

from .count_pair import CountPair

STEP = 5e-5  # of the grid: 1e-3 would add a tenth to a year of days
POINTS = 300  # of delta, where losses are taken from it
FLAT = 1e-8  # a delta below which points are not worth their while
NEGLIGIBLE = 1e-15  # probability of all losses that are taken for unbounded
TAIL = 1e-12  # of a sum of losses, above its grid and below it
SLOPES = np.geomspace(1e-2, 1e4, 100)  # at which a tail is bounded [Chernoff]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LossGrid:
    """The probability of each loss `first + i` steps, and that of a loss without bound."""

    first: int
    probabilities: Floats
    unbounded: float

    @classmethod
    def from_pair(cls, pair: CountPair) -> LossGrid:
        """Round exact losses up to the grid; what is too rare to matter becomes unbounded."""
        steps = np.ceil(pair.losses / STEP).astype(np.int64)
        first = int(steps.min())
        probabilities = np.bincount(steps - first, pair.probabilities)
        rare = probabilities < NEGLIGIBLE / len(probabilities)
        unbounded = pair.lost + float(probabilities[rare].sum())
        return cls(first, np.where(rare, 0.0, probabilities), unbounded)

    @classmethod
    def from_delta(cls, delta: Callable[[float], float], most: float) -> LossGrid:
        """Join points of a symmetric batch's delta by lines; no loss is above `most`."""
        places = _places(delta, most)
        losses = places * STEP
        positive = np.minimum.accumulate([*map(delta, losses[:-1].tolist()), 0.0])
        mirrored = 1 - np.exp(-losses) + np.exp(-losses) * positive
        bounds = np.exp(np.concatenate([-losses[:0:-1], losses]))
        curve = np.concatenate([mirrored[:0:-1], positive])
        # From the right, so that a rounding error never makes the curve less than it is.
        slopes = np.minimum.accumulate((np.diff(curve) / np.diff(bounds))[::-1])[::-1]
        other = np.maximum(np.diff(np.concatenate([[-1.0], slopes, [0.0]])), 0)
        top = int(places[-1])
        probabilities = np.zeros(2 * top + 1)
        probabilities[np.concatenate([top - places[:0:-1], top + places])] = other * bounds
        return cls(-top, probabilities, 0.0)

    def composed(self, batches: int) -> LossGrid:
        """Return the sum over independent batches, by a Fourier transform of its middle part.

        What lies outside that part comes up inside it and is counted there; what lies above it is
        counted as unbounded too.
        """
        first, last = self._extent(batches)
        size = 1 << (last - first).bit_length()
        steps = np.flatnonzero(self.probabilities)
        wrapped = np.bincount(
            (steps + self.first) % size, self.probabilities[steps], minlength=size
        )
        total = np.fft.irfft(np.fft.rfft(wrapped) ** batches, size)
        probabilities = np.maximum(np.roll(total, -first % size), 0)
        return LossGrid(first, probabilities, 1 - (1 - self.unbounded) ** batches + TAIL)

    def _extent(self, batches: int) -> tuple[int, int]:
        """Return steps between which all of the sum but its tails lies."""
        steps = np.flatnonzero(self.probabilities)
        weights, losses = self.probabilities[steps], (steps + self.first) * STEP
        ends = []
        for sign, end in ((-1, losses[0]), (1, losses[-1])):
            least = [
                (batches * log(float(weights @ np.exp(slope * (sign * losses - sign * end)))))
                / slope
                - log(TAIL) / slope
                for slope in SLOPES
            ]
            ends.append(int(sign * ceil(min(0.0, *least) / STEP)) + round(batches * end / STEP))
        return ends[0], ends[1]

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon whose delta is at most this; infinite if none is."""
        if self.unbounded > delta:
            return float("inf")
        losses = (self.first + np.arange(len(self.probabilities))) * STEP
        mass = np.cumsum(self.probabilities[::-1])[::-1]
        other = np.cumsum((self.probabilities * np.exp(-losses))[::-1])[::-1]
        deltas = mass - np.exp(losses) * other + self.unbounded
        place = int(np.argmax(deltas <= delta))
        if losses[place] <= 0:
            return 0.0
        return log((mass[place] + self.unbounded - delta) / other[place])


def _places(delta: Callable[[float], float], most: float) -> Ints:
    """Return the steps of points, from 0 to the largest loss, dense where delta still matters."""
    high = most
    while high > most / 256 and delta(high / 2) <= FLAT:
        high /= 2
    top = ceil(most / STEP)
    dense = np.arange(0, min(ceil(high / STEP), top), ceil(high / STEP / POINTS))
    return np.append(dense, top)


def largest_loss(ratio: float) -> float:
    """Return the largest loss of one report, and far more than a float rounds it by."""
    return log(ratio) + exp(-30)
