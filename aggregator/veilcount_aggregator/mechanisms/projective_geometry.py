"""Projective geometry on the server: hyperplanes are counted, and decoded to supports."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.random import Generator

from veilcount_shared.composition import Overlap
from veilcount_shared.mechanisms import ProjectiveGeometry

from ..estimation.confidence_intervals import Counts, Floats
from ..estimation.estimator import Estimator
from ..estimation.group_sums import CellSums
from ..estimation.projective_supports import points_held, supports, unused_supports
from ..estimation.projective_vectors import meets, vectors
from ..sampling.mixture import Ints, Mixture, chunks, scattered
from ..sampling.projective_columns import hyperplanes_through
from ..series.packed_rows import Counters
from .handler import ShareHandler, handles


@handles(ProjectiveGeometry)
class ProjectiveGeometryHandler(ShareHandler[ProjectiveGeometry]):
    """Each message is a hyperplane with a counter of its own."""

    def describe(self) -> str:
        """Return the space."""
        return f"plane: a hyperplane of PG({self.mechanism.t - 1}, {self.mechanism.q})"

    def supports(self, counters: Counts, places: Counts | None = None) -> Counts:
        """Return how many of the reported hyperplanes hold each input."""
        return supports(self.mechanism, counters, places)

    def unused_supports(self, counters: Counts) -> Counts:
        """Return the supports of the points that are no input."""
        return unused_supports(self.mechanism, counters)

    def group_sums(self, counters: Counts, groups: Sequence[Counts]) -> Estimator:
        """Return each group's sum, cell by cell."""
        return CellSums.from_counters(self.mechanism, counters, groups)

    def joint_support(self, counters: Counts, whole: Counts) -> Floats:
        """Return the joint supports, which the messages themselves show."""
        together = self.supports(counters * points_held(self.mechanism, whole))
        return together / self.report_count(counters)

    def incidence(self) -> Floats:
        """Return which hyperplanes go through each input."""
        m = self.mechanism
        hyperplanes = vectors(m.q, m.t, np.arange(m.messages))
        return np.array([meets(m, hyperplanes, x) for x in range(m.k)], np.float64)

    def overlaps(self) -> tuple[Overlap, ...]:
        """Return the overlap of any two inputs: all are alike."""
        v, r = self.mechanism.messages, self.mechanism.support_size
        return (
            Overlap(
                Fraction(r, v), Fraction(r - self.mechanism.pair_support_size, v), self.mechanism.P
            ),
        )

    @property
    def mixture(self) -> Mixture:
        """An input owns the hyperplanes through it."""
        return Mixture(self.mechanism.P, self.mechanism.support_size, self.mechanism.messages)

    def _through(self, inputs: Ints, generator: Generator) -> Ints:
        which = generator.integers(self.mechanism.support_size, size=len(inputs))
        return hyperplanes_through(self.mechanism, inputs, which)

    def draw_messages(self, inputs: Ints, generator: Generator) -> Ints:
        """Return one hyperplane for each device."""
        return self.mixture.draw(inputs, lambda own: self._through(own, generator), generator)

    def draw_counters(self, held: Ints, generator: Generator) -> Counters:
        """Return how many reports name each hyperplane."""
        informative = self.mixture.informative_counts(held, generator)
        uniform = (held - informative).sum(keepdims=True)
        counts: Counters = scattered(uniform, self.mechanism.messages, generator)[0]
        ends = np.cumsum(informative)
        for part in chunks(int(ends[-1])):
            devices = np.arange(part.start, min(part.stop, ends[-1]))
            inputs = np.searchsorted(ends, devices, side="right")
            sent = self._through(inputs, generator)
            counts += np.bincount(sent, minlength=self.mechanism.messages)
        return counts
