"""Open strings on the server: candidates are read from the buckets of both halves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
from numpy.random import Generator

from veilcount_shared.composition import Overlap
from veilcount_shared.mechanisms import HashedStrings
from veilcount_shared.mechanisms.hashed_strings import HALVES

from ..estimation.confidence_intervals import Counts, Floats
from ..estimation.estimator import Estimator
from ..estimation.open_strings import HalfSupports
from ..sampling import Ints, Mixture, summed
from ..series.packed_rows import Counters
from .handler import ShareHandler, handles
from .projective_geometry import ProjectiveGeometryHandler


@handles(HashedStrings)
class HashedStringsHandler(ShareHandler[HashedStrings]):
    """A place is a pair of buckets; a report supports one of them."""

    has_anytime_intervals = False
    lists_values = False

    def describe(self) -> str:
        return f"hashed: one of two of {self.mechanism.k:,} buckets; {self._geometry.describe()}"

    @property
    def _geometry(self) -> ProjectiveGeometryHandler:
        return ProjectiveGeometryHandler(self.mechanism.geometry)

    def halves(self, counters: Counts) -> Counts:
        """Return the counters of each half."""
        return counters.reshape(HALVES, -1)

    def buckets(self, places: Counts) -> Counts:
        """Return the buckets of places in each half."""
        return np.stack(np.divmod(places, self.mechanism.k))

    def bucket_supports(self, counters: Counts) -> Counts:
        """Return how many reports support each bucket of each half."""
        found = np.empty((HALVES, self.mechanism.k), np.int64)
        for row, half in zip(found, self.halves(counters), strict=True):
            row[:] = self._geometry.supports(half)
        return found

    def evidence(self, counters: Counts, places: Counts) -> HalfSupports:
        counts = [
            self._geometry.supports(half, buckets)
            for half, buckets in zip(self.halves(counters), self.buckets(places), strict=True)
        ]
        return HalfSupports(
            self.halves(counters).sum(axis=1), np.stack(counts), self.response, self.mechanism.k
        )

    def supports(self, counters: Counts, places: Counts | None = None) -> Counts:
        if places is None:
            _refuse("all values")
        found: Counts = self.evidence(counters, places).counts.sum(axis=0)
        return found

    def group_sums(self, counters: Counts, groups: Sequence[Counts]) -> Estimator:  # noqa: ARG002 - refused
        _refuse("groups of values")

    def joint_support(self, counters: Counts, whole: Counts) -> Floats:  # noqa: ARG002 - refused
        _refuse("parts of a group")

    def incidence(self) -> Floats:
        _refuse("all values")

    def overlaps(self) -> tuple[Overlap, ...]:
        """Return the overlap of two strings that share no bucket: that of one half."""
        return self._geometry.overlaps()

    @property
    def mixture(self) -> Mixture:
        """A string owns the hyperplanes through its bucket in both halves."""
        plane = self.mechanism.geometry
        return Mixture(plane.P, HALVES * plane.support_size, self.mechanism.messages)

    def draw_inputs(self, points: Ints, generator: Generator) -> Ints:
        """Return half and bucket, by the half that each device draws."""
        half = generator.integers(HALVES, size=len(points))
        buckets = self.buckets(points)
        return half * self.mechanism.k + np.where(half == 0, *buckets)

    def count_inputs(self, points: Ints, devices: Ints, generator: Generator) -> Ints:
        first, size = generator.binomial(devices, 1 / HALVES), self.mechanism.k
        one, two = self.buckets(points)
        return np.concatenate([summed(one, first, size), summed(two, devices - first, size)])

    def draw_messages(self, inputs: Ints, generator: Generator) -> Ints:
        half, buckets = np.divmod(inputs, self.mechanism.k)
        sent = self._geometry.draw_messages(buckets, generator)
        return half * self.mechanism.geometry.messages + sent

    def draw_counters(self, held: Ints, generator: Generator) -> Counters:
        halves = held.reshape(HALVES, -1)
        return np.concatenate([self._geometry.draw_counters(half, generator) for half in halves])


def _refuse(what: str) -> NoReturn:
    raise TypeError(f"open strings have no {what}: name candidates")
