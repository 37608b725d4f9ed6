"""Drawn bits on the server: of each value so many reports, with a share of its own among them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.random import Generator

from veilcount_shared.composition import Overlap
from veilcount_shared.mechanisms import DrawnBit

from ..estimation.confidence_intervals import Alpha, Counts, Ends, Floats
from ..estimation.estimator import Estimator, IntervalTarget
from ..estimation.proportions import GroupSums, SupportCounts
from ..estimation.response_distribution import ResponseDistribution
from ..series.packed_rows import Counters
from .handler import ShareHandler, handles
from .sampling import Ints, Mixture, ticked

ALL_BUT_ONE = 1  # report of a value that is honest at least


@dataclass(frozen=True, slots=True, eq=False)
class DrawnShares(GroupSums):
    """The shares of values, each among the reports that drew it; n are all of them.

    Those that drew a value are a sample of the reports, so an interval of exactly these people has
    the sampling too.
    """

    reports: int
    values: int  # estimated or not: simultaneous intervals hold for all

    @property
    def families(self) -> int:
        return self.values

    @property
    def n(self) -> int:
        return self.reports

    def error(self, target: IntervalTarget) -> Floats:  # noqa: ARG002 - always of a sample
        return np.concatenate([value.error(IntervalTarget.POPULATION) for value in self.groups])

    def interval(self, alpha: Alpha, target: IntervalTarget) -> Ends:  # noqa: ARG002
        return GroupSums.interval(self, alpha, IntervalTarget.POPULATION)

    def poisoned(self, fakes: float) -> Ends:
        """Return the ranges of the honest shares: all fakes may be about one value."""
        ends = [value.poisoned(self._fakes_of(value, fakes)) for value in self.groups]
        return np.concatenate([low for low, _ in ends]), np.concatenate([high for _, high in ends])

    def _fakes_of(self, value: SupportCounts, fakes: float) -> float:
        return min(fakes * self.reports, value.n - ALL_BUT_ONE) / value.n


@handles(DrawnBit)
class DrawnBitHandler(ShareHandler[DrawnBit]):
    """Counters come in pairs: of each value, reports that it is not ticked, and that it is."""

    def describe(self) -> str:
        return f"bit: of one of {self.mechanism.k} values, drawn"

    @property
    def counts_messages(self) -> bool:
        """False: a value that all tick has one message as often as an attack would send it."""
        return False

    # -- estimates ---------------------------------------------------------------------------------

    def is_estimable(self, counters: Counts, covers: int) -> bool:
        """Whether each value was drawn; among covers, which draw too, whether any was."""
        if covers:
            return self.report_count(counters) > covers
        return bool((counters.reshape(-1, 2).sum(axis=1) > 0).all())

    def supports(self, counters: Counts, places: Counts | None = None) -> Counts:
        ticks = counters[1::2]
        return ticks if places is None else ticks[places]

    def evidence(self, counters: Counts, places: Counts, covers: int = 0) -> Estimator:
        """Return each share among the reports of its value.

        How many of these are covers is not known, so among covers it is that of all reports.
        """
        if covers:
            return self.support_counts(counters, places, covers)
        bit, rows = self.mechanism.bit, counters.reshape(-1, 2)[places].tolist()
        response = ResponseDistribution.from_probabilities(bit, 1 - bit)
        shares = (SupportCounts(no + yes, np.array([yes]), response, 1) for no, yes in rows)
        return DrawnShares(tuple(shares), self.report_count(counters), self.mechanism.k)

    @property
    def cover_support(self) -> float:
        return 1 / self.mechanism.messages

    def noise_variance(self) -> float:
        """Return n times the variance of a value's share: one in k reports is about it."""
        bit = self.mechanism.bit
        return float(self.mechanism.k * bit * (1 - bit) / (2 * bit - 1) ** 2)

    def overlaps(self) -> tuple[Overlap, ...]:
        """Return the overlap of all values and none: of whichever is drawn, the other bit."""
        half = Fraction(1, 2)
        return (Overlap(half, half, self.mechanism.bit),)

    # -- simulated devices -------------------------------------------------------------------------

    @property
    def mixture(self) -> Mixture:
        """A report of any value, as a mixture of the input's own bits and all messages."""
        return Mixture(self.mechanism.bit, self.mechanism.k, self.mechanism.messages)

    def draw_messages(self, inputs: Ints, generator: Generator) -> Ints:
        m = self.mechanism
        drawn = generator.integers(m.k, size=len(inputs))
        bits = ticked(inputs, m.k)[np.arange(len(inputs)), drawn]
        flipped = generator.random(len(inputs)) >= float(m.bit)
        messages: Ints = 2 * drawn + (bits ^ flipped)
        return messages

    def draw_counters(self, held: Ints, generator: Generator) -> Counters:
        """Return the counters of devices with each mask: of few values, or the masks are many."""
        inputs = np.repeat(np.arange(len(held)), held)
        return self.tally(self.draw_rows(inputs, generator))
