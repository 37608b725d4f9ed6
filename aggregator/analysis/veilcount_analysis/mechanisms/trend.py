"""A trend on the server: reports are counted by level and sign."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.composition import Overlap
from veilcount_shared.mechanisms import TrendMechanism

from ..estimation.confidence_intervals import Counts
from ..estimation.trend import TrendCounts
from ..estimation.trend_weights import interval_levels, largest_influence, least_variances
from ..series.packed_rows import Counters
from .handler import MechanismHandler, handles, typed_handler
from .sampling import Ints

HALF = Fraction(1, 2)


@handles(TrendMechanism)
class TrendHandler(MechanismHandler[TrendMechanism]):
    """A report is a sign of the interval of a level that ends with its period."""

    def describe(self) -> str:
        return f"trend: a rise or a fall, over one of {self.mechanism.levels} lengths of time"

    def counts(self, counters: Counts) -> TrendCounts:
        """Return the reports of each interval, from the counters of the first periods, a row each.

        An interval's reports are of its last period.
        """
        periods = len(counters)
        level = interval_levels(periods)
        first = np.flatnonzero(np.diff(level, prepend=-1))  # interval of its level
        ends = (np.arange(len(level)) - first[level] + 1 << level) - 1
        falls, rises = counters.reshape(periods, -1, 2)[ends, level].T
        mechanism = self.mechanism
        return TrendCounts(float(mechanism.gap), mechanism.levels, periods, rises, falls + rises)

    def noise_variance(self) -> float:
        """Return that of a share near 0, averaged over the periods."""
        mechanism = self.mechanism
        squares = float(least_variances(mechanism.periods).mean())
        return squares * mechanism.levels / float(mechanism.gap) ** 2

    def reach(self) -> tuple[float, float]:
        """Return that of a device of the level that moves the share most."""
        mechanism = self.mechanism
        influence = largest_influence(mechanism.periods)
        most = influence * mechanism.levels / float(mechanism.gap)
        return most, most

    def overlaps(self) -> tuple[Overlap, ...]:
        """Return that of all reports of a person: of any two histories."""
        return (Overlap(HALF, HALF, self.mechanism.P),)

    def draw_messages(self, inputs: Ints, generator: Generator) -> Ints:
        """Return the first report of each device, whose state becomes its input."""
        levels = generator.integers(self.mechanism.levels, size=len(inputs))
        right = generator.random(len(inputs)) < (1 + float(self.mechanism.gap)) / 2
        fair = generator.integers(2, size=len(inputs))
        return 2 * levels + np.where(inputs == 1, right, fair)

    def draw_counters(self, held: Ints, generator: Generator) -> Counters:
        inputs = np.repeat(np.arange(2), held)
        return np.bincount(
            self.draw_messages(inputs, generator), minlength=self.mechanism.counters
        ).astype(np.int64)


def trend_handler(collection: Collection) -> TrendHandler:
    """Return the handler of a trend, or refuse any other collection."""
    return typed_handler(collection, TrendHandler, "it is no trend")
