"""Projective geometry on the server: hyperplanes are counted, and decoded to supports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.random import Generator

from veilcount_shared.composition import Overlap
from veilcount_shared.mechanisms import ProjectiveGeometry
from veilcount_shared.mechanisms.finite_field import get_field

from ..estimation.confidence_intervals import Counts, Floats
from ..estimation.estimator import Estimator
from ..estimation.projective_supports import points_held, supports, unused_supports
from ..estimation.projective_vectors import meets, minus, numbers, plus, times, vectors
from ..estimation.proportions import CellSums
from ..series.packed_rows import Counters
from .handler import GroupHandler, handles
from .sampling import Ints, Mixture, chunks, scattered


def hyperplanes_through(plane: ProjectiveGeometry, x: Ints, which: Ints) -> Ints:
    """Return for each point one of the `owned` hyperplanes that hold it, by which of them.

    The coordinates of the normal away from the point's pivot are any point of PG(t-2, q).
    """
    gf = get_field(plane.q)
    point = np.stack(vectors(plane.q, plane.t, x))
    free = np.stack(vectors(plane.q, plane.t - 1, which))
    zero = np.zeros_like(free[:1])
    pivot, places = (point != 0).argmax(axis=0), np.arange(plane.t)[:, np.newaxis]
    normal = np.where(places < pivot, np.concatenate([free, zero]), np.concatenate([zero, free]))
    normal[places == pivot] = 0
    product = zero[0]
    for coordinate, scale in zip(point, normal, strict=True):
        product = plus(gf, product, times(gf, coordinate, scale))
    normal[pivot, np.arange(len(x))] = minus(gf, product)
    return numbers(gf, list(normal)).astype(np.int64)


@handles(ProjectiveGeometry)
class ProjectiveGeometryHandler(GroupHandler[ProjectiveGeometry]):
    """Each message is a hyperplane with a counter of its own."""

    @property
    def message_supports(self) -> Callable[[int, int], bool]:
        return self.mechanism.supports

    def describe(self) -> str:
        return f"plane: a hyperplane of PG({self.mechanism.t - 1}, {self.mechanism.q})"

    def supports(self, counters: Counts, places: Counts | None = None) -> Counts:
        return supports(self.mechanism, counters, places)

    def unused_supports(self, counters: Counts) -> Counts:
        return unused_supports(self.mechanism, counters)

    def group_sums(self, counters: Counts, groups: Sequence[Counts], covers: int = 0) -> Estimator:
        return CellSums.from_counters(self.mechanism, counters, groups, covers)

    def joint_support(self, counters: Counts, whole: Counts) -> Floats:
        together = self.supports(counters * points_held(self.mechanism, whole))
        return together / self.report_count(counters)

    def incidence(self) -> Floats:
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
        return self.mixture.draw(inputs, lambda own: self._through(own, generator), generator)

    def draw_counters(self, held: Ints, generator: Generator) -> Counters:
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
