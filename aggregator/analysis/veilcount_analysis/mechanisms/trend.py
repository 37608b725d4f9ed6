"""A trend on the server: reports are counted by level and sign."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.composition import Overlap
from veilcount_shared.mechanisms import TrendMechanism

from ..estimation.confidence_intervals import Counts
from ..estimation.trend import TrendEstimator
from ..series.packed_rows import Counters
from .handler import MechanismHandler, handles, typed_handler
from .sampling import Ints

HALF = Fraction(1, 2)


@handles(TrendMechanism)
class TrendHandler(MechanismHandler[TrendMechanism]):
    """A report is a sign of the interval of a level that ends with its period."""

    def describe(self) -> str:
        return f"trend: a rise or a fall, over one of {self.mechanism.levels} lengths of time"

    def evidence(self, period: int, counters: CountersOfPeriod) -> TrendEstimator | None:
        """Return the estimator after a period; None where an interval has no reports."""
        tallies = [
            counters(_last(level, interval)).reshape(-1, 2)[level]
            for level, interval in self.mechanism.intervals_before(period + 1)
        ]
        rises, reports = np.array([(counts[1], counts.sum()) for counts in tallies]).T
        return TrendEstimator(float(self.mechanism.gap), rises, reports) if reports.all() else None

    def noise_variance(self) -> float:
        """Return that of a share near 0, averaged over the periods."""
        periods = range(1, self.mechanism.periods + 1)
        return sum(float(self.mechanism.variance(period)) for period in periods) / len(periods)

    def reach(self) -> tuple[float, float]:
        most = self.mechanism.levels / float(self.mechanism.gap)
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


class CountersOfPeriod(Protocol):
    """Where the counters of one period are read."""

    def __call__(self, period: int, /) -> Counts:
        """Return them."""


def _last(level: int, interval: int) -> int:
    """Return the last period of an interval."""
    return ((interval + 1) << level) - 1


def trend_handler(collection: Collection) -> TrendHandler:
    """Return the handler of a trend, or refuse any other collection."""
    return typed_handler(collection, TrendHandler, "it is no trend")
