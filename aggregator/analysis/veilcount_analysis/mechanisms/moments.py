"""Moments of several numbers on the server: the levels of each moment are decoded and averaged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from veilcount_shared import Collection
from veilcount_shared.composition import Overlap
from veilcount_shared.domain import GRID
from veilcount_shared.mechanisms import Moments

from ..estimation.confidence_intervals import Counts
from ..estimation.mean_noise import decoded_levels
from ..estimation.moments import MomentMeans
from ..series.packed_rows import Counters
from .handler import MechanismHandler, handles, typed_handler
from .mean import MeanHandler
from .sampling import Ints


@handles(Moments)
class MomentsHandler(MechanismHandler[Moments]):
    """A device draws one moment of its numbers, and reports it as a mean."""

    def describe(self) -> str:
        many = f"one of {len(self.mechanism.moments)} moments of {self.mechanism.features} numbers"
        return f"moments: {many}; {self._mean.describe()}"

    @property
    def _mean(self) -> MeanHandler:
        return MeanHandler(self.mechanism.mean)

    def means(self, counters: Counts, covers: int = 0) -> MomentMeans:
        """Return the estimate of each moment, of numbers from -1 to 1.

        So many of the reports are a shuffler's covers, and at least one is not.
        """
        rows = counters.reshape(len(self.mechanism.moments), -1)
        levels = 2 * decoded_levels(self.mechanism.mean) - 1
        return MomentMeans.from_levels(self.mechanism.features, rows, levels, covers)

    def noise_variance(self) -> float:
        """Return that of a moment as a part of its range; few devices report it."""
        return self._mean.noise_variance() * len(self.mechanism.moments)

    def cover_variance(self) -> float:
        """Return that of a moment in the middle of its range; few covers are of it."""
        return self._mean.cover_variance() * len(self.mechanism.moments)

    def reach(self) -> tuple[float, float]:
        push, pull = self._mean.reach()
        return push * len(self.mechanism.moments), pull * len(self.mechanism.moments)

    def overlaps(self) -> tuple[Overlap, ...]:
        return self._mean.overlaps()

    def draw_inputs(self, points: Ints, generator: Generator) -> Ints:
        """Return moment and start of each device, from the points of its features as one number."""
        features = range(self.mechanism.features)
        whole = np.asarray(points, object)
        digits = [
            np.array([self.mechanism.digit(x, feature) for x in whole]) for feature in features
        ]
        return self.draw_moments(np.stack(digits, axis=1), generator)

    def draw_moments(self, points: NDArray[Any], generator: Generator) -> Ints:
        """Return moment and start of each device, from its points on the grid of each feature."""
        moments = self.mechanism.moments
        squares = {(feature, feature) for feature in range(self.mechanism.features)}
        drawn = generator.integers(len(moments), size=len(points))
        numbers = 2 * points / GRID - 1
        chosen = np.empty(len(points))  # as a part of the moment's range
        for place, moment in enumerate(moments):
            here = drawn == place
            products = numbers[here][:, moment].prod(axis=1)
            chosen[here] = products if moment in squares else (products + 1) / 2
        grid = np.rint(chosen * GRID).astype(np.int64)
        starts = self._mean.draw_inputs(grid, generator)
        return drawn * self._starts + starts

    @property
    def _starts(self) -> int:
        return self.mechanism.mean.window.inputs

    def draw_messages(self, inputs: Ints, generator: Generator) -> Ints:
        moment, starts = np.divmod(inputs, self._starts)
        return moment * self.mechanism.levels + self._mean.draw_messages(starts, generator)

    def draw_counters(self, held: Ints, generator: Generator) -> Counters:
        rows = held.reshape(len(self.mechanism.moments), -1)
        return np.concatenate([self._mean.draw_counters(row, generator) for row in rows])


def moments_handler(collection: Collection) -> MomentsHandler:
    """Return the handler of a collection of several numbers, or refuse any other."""
    return typed_handler(collection, MomentsHandler, "it has no moments")
