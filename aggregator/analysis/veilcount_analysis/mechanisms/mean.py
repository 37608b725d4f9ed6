"""The mean of a number on the server: the levels of its reports are decoded and averaged."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.random import Generator

from veilcount_shared.domain import GRID, Number
from veilcount_shared.mechanisms import MeanMechanism

from ..estimation.confidence_intervals import Counts, Floats
from ..estimation.confidence_sequences import LookCount
from ..estimation.difference import persons_variance_of_mean
from ..estimation.estimator import Estimator
from ..estimation.mean import DecodedMean, anytime_mean
from ..estimation.results import IntervalTerms, MeanEstimate, NoReports, estimate_average
from .handler import handles
from .sampling import Ints, summed
from .window import WindowHandler


@handles(MeanMechanism)
class MeanHandler(WindowHandler[MeanMechanism]):
    """A number is rounded to a start, up or down by chance, so that the mean is kept."""

    has_anytime_intervals = True

    def estimate(
        self, domain: Number, counters: Counts, terms: IntervalTerms, covers: int = 0
    ) -> MeanEstimate | NoReports:
        if counters.sum() <= covers:
            ends = np.array([float(domain.low)]), np.array([float(domain.high)])
            return NoReports(low=ends[0], high=ends[1], level=terms.level)
        return estimate_average(self.mean(domain, counters, terms.looks, covers), terms)

    def mean(
        self, domain: Number, counters: Counts, looks: LookCount, covers: int = 0
    ) -> Estimator:
        if looks is LookCount.EVERY:
            return anytime_mean(self.mechanism, domain, counters)
        return DecodedMean.from_counters(self.mechanism, domain, counters, covers)

    def noise_variance(self) -> float:
        """Return the worst variance over all numbers, for the range [0, 1]."""
        return float(self.mechanism.variance / 4)  # from [-1, 1]

    def cover_variance(self) -> float:
        """Return that of a uniform level, decoded."""
        return float(np.var(np.array(self.mechanism.decoded, np.float64)))

    def reach(self) -> tuple[float, float]:
        return float(max(self.mechanism.decoded)), -float(min(self.mechanism.decoded))

    def persons_variance(self, domain: object, evidence: Estimator) -> Floats:
        """Return the most that the variance among persons can be."""
        covers = evidence.cover_noise if isinstance(evidence, DecodedMean) else 0.0
        return persons_variance_of_mean(self.mechanism, cast("Number", domain), evidence, covers)

    def rounded(self, points: Ints) -> tuple[Ints, Floats]:
        """Return the start at or below each point, and the chance of the next one instead.

        In floats: a chance is off by some 1e-15 in units of the range.
        """
        means = self.mechanism.means
        low, high = means[0], means[-1]
        ends = np.array([float((mean - low) / (high - low)) for mean in means])
        place = points / GRID
        start = np.clip(np.searchsorted(ends, place, side="right") - 1, 0, len(ends) - 2)
        up = (place - ends[start]) / (ends[start + 1] - ends[start])
        return start, np.clip(up, 0, 1)

    def draw_inputs(self, points: Ints, generator: Generator) -> Ints:
        low, up = self.rounded(points)
        rounded: Ints = low + (generator.random(len(points)) < up)
        return rounded

    def count_inputs(self, points: Ints, devices: Ints, generator: Generator) -> Ints:
        low, up = self.rounded(points)
        higher, size = generator.binomial(devices, up), self.mechanism.inputs
        return summed(low, devices - higher, size) + summed(low + 1, higher, size)
