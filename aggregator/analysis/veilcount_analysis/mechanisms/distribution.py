"""The distribution of a number on the server: EM over the square wave's levels."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.random import Generator

from veilcount_shared.domain import GRID_BITS, Number
from veilcount_shared.mechanisms import DistributionMechanism
from veilcount_shared.mechanisms.square_wave import BUCKET_BITS, BUCKETS

from ..estimation.cdf import BucketHistogram
from ..estimation.confidence_intervals import Counts
from ..estimation.confidence_sequences import LookCount
from ..estimation.estimator import Estimator
from ..estimation.results import IntervalTerms
from ..estimation.square_wave_em import estimate_distribution, get_wave
from ..estimation.weighted_estimator import WeightedMean
from .handler import handles
from .sampling import Ints
from .window import WindowHandler


@handles(DistributionMechanism)
class DistributionHandler(WindowHandler[DistributionMechanism]):
    """A number is the start of a window: its bucket."""

    def estimate(
        self, domain: Number, counters: Counts, terms: IntervalTerms, covers: int = 0
    ) -> BucketHistogram:
        return estimate_distribution(
            self.mechanism,
            domain,
            counters,
            terms.level,
            target=terms.target,
            covers=self.cover_reports(covers),
        )

    def mean(
        self,
        domain: Number,
        counters: Counts,
        looks: LookCount,  # noqa: ARG002 - one look alone
        covers: int = 0,
    ) -> Estimator:
        wave, among = get_wave(self.mechanism), self.cover_reports(covers)
        return WeightedMean.from_counters(domain, counters, wave.numbers, among)

    @property
    def _slope(self) -> float:
        """How much the mean level of a report rises from one bucket to the next."""
        m, w = self.mechanism.window.levels, self.mechanism.window.width
        return float(self.mechanism.P) - float(1 - self.mechanism.P) * w / (m - w)

    def noise_variance(self) -> float:
        """Return the worst variance of the linear, unbiased mean over all buckets.

        The mean level of a report from bucket s is linear in s, so levels decode to numbers.
        """
        m, w = self.mechanism.window.levels, self.mechanism.window.width
        inside, outside = float(self.mechanism.P) / w, float(1 - self.mechanism.P) / (m - w)
        slope = (inside - outside) * w
        centred = np.arange(m) - (m - 1) / 2
        means, seconds = (
            outside * moment.sum() + (inside - outside) * sliding_window_view(moment, w).sum(axis=1)
            for moment in (centred, centred**2)
        )
        return float((seconds - means**2).max()) / (slope * self.mechanism.inputs) ** 2

    def cover_variance(self) -> float:
        """Return that of a uniform level, decoded linearly."""
        return (self.mechanism.messages**2 - 1) / 12 / (self._slope * self.mechanism.inputs) ** 2

    def reach(self) -> tuple[float, float]:
        """Return the outermost levels, decoded linearly; the range is symmetric."""
        margin = (self.mechanism.messages - 1) / 2 / (self._slope * self.mechanism.inputs) - 0.5
        return 1 + margin, margin

    def draw_inputs(self, points: Ints, generator: Generator) -> Ints:  # noqa: ARG002 - nothing is drawn
        return buckets(points)


def buckets(points: Ints) -> Ints:
    """Return the bucket of each point of the grid; the upper end belongs to the last."""
    bucket_numbers: Ints = np.minimum(points >> GRID_BITS - BUCKET_BITS, BUCKETS - 1)
    return bucket_numbers
