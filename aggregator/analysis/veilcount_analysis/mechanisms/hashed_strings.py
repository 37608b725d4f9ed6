"""Open strings on the server: candidates are read from the buckets of each part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from veilcount_shared.composition import Overlap
from veilcount_shared.domain import HALVES
from veilcount_shared.mechanisms import HashedStrings

from ..estimation.confidence_intervals import Counts
from ..estimation.covered_supports import among_covers, persons_part
from ..estimation.open_strings import (
    HalfSupports,
    PartSupports,
    least_share,
    least_share_by_letters,
)
from ..estimation.proportions import SupportCounts
from ..estimation.response_distribution import ResponseDistribution
from ..series.packed_rows import Counters
from .handler import ShareHandler, handles
from .projective_geometry import ProjectiveGeometryHandler
from .sampling import Ints, Mixture, summed

BucketCounts = NDArray[np.integer[Any]]


@handles(HashedStrings)
class HashedStringsHandler(ShareHandler[HashedStrings]):
    """A place is a pair of buckets, of beginnings that of the last part; a report supports one."""

    has_anytime_intervals = False
    lists_values = False

    @property
    def message_supports(self) -> Callable[[int, int], bool]:
        return self.mechanism.supports

    def describe(self) -> str:
        buckets = f"one of {self.mechanism.parts} of {self.mechanism.k:,} buckets"
        return f"hashed: {buckets}; {self._geometry.describe()}"

    @property
    def _geometry(self) -> ProjectiveGeometryHandler:
        return ProjectiveGeometryHandler(self.mechanism.geometry)

    def parts(self, counters: Counts) -> Counts:
        """Return the counters of each part."""
        return counters.reshape(self.mechanism.parts, -1)

    def buckets(self, places: Counts) -> Counts:
        """Return the buckets of places in each half."""
        return np.stack(np.divmod(places, self.mechanism.k))

    def bucket_supports(self, counters: Counts) -> BucketCounts:
        """Return how many reports support each bucket of each part, in half the memory."""
        kind = np.uint32 if counters.sum() < 1 << 32 else np.int64
        supports = np.empty((self.mechanism.parts, self.mechanism.k), kind)
        for row, part in zip(supports, self.parts(counters), strict=True):
            row[:] = self._geometry.supports(part)
        return supports

    def evidence(
        self, counters: Counts, places: Counts, covers: int = 0
    ) -> HalfSupports | PartSupports:
        """Return that of pairs of buckets; of beginnings, that of buckets of the last part."""
        parts = self.parts(counters)
        if self.mechanism.parts != HALVES:
            counts = [self._geometry.supports(parts[-1], places)]
            return self.evidence_of(parts.sum(axis=1), counts, covers)
        both = zip(parts, self.buckets(places), strict=True)
        counts = [self._geometry.supports(half, buckets) for half, buckets in both]
        return self.evidence_of(parts.sum(axis=1), counts, covers)

    def evidence_of(
        self, sizes: Counts, counts: Sequence[Counts], covers: int = 0
    ) -> HalfSupports | PartSupports:
        """Return the estimator of counted supports: of both halves, or of the last part."""
        k, n, support = self.mechanism.k, int(sizes.sum()) - covers, self.cover_support
        if self.mechanism.parts == HALVES:
            return HalfSupports(sizes, np.stack(counts), self.response, k, covers, support)
        part = SupportCounts(max(int(sizes[-1]), 1), counts[-1], self.response, k)
        return PartSupports(n, among_covers(part, persons_part(n, covers), support), covers)

    def received(self, n: float, covers: int) -> ResponseDistribution:
        """Return the distribution of any report's support of a bucket, of n persons and covers."""
        return self.response.diluted(persons_part(n, covers), self.cover_support)

    def supports(self, counters: Counts, places: Counts | None = None) -> Counts:
        if places is None:
            raise TypeError("open strings are not listed: name candidates")
        return self.evidence(counters, places).supports

    def noise_variance(self) -> float:
        """Return that of a share; of beginnings, the last part alone tells it."""
        return super().noise_variance() * self._readings

    def cover_variance(self) -> float:
        return super().cover_variance() * self._readings

    def reach(self) -> tuple[float, float]:
        """Return that of fakes that all choose one part; the smaller one of two halves counts."""
        push, pull = super().reach()
        return push * self._readings, pull * self.mechanism.parts

    def least_share(self, n: float, alpha: float, covers: int = 0) -> float:
        """Return the share of a string that is found half of the time, in a test at alpha.

        Where strings are found by their beginnings, about, whatever alpha is.
        """
        received, reports = self.received(n, covers), n + covers
        if self._readings == 1:
            return least_share(received, reports, alpha)
        return least_share_by_letters(received, reports / self._readings)

    @property
    def _readings(self) -> int:
        """How many reports there are for each that tells a string's share."""
        return 1 if self.mechanism.parts == HALVES else self.mechanism.parts

    def overlaps(self) -> tuple[Overlap, ...]:
        """Return the overlap of two strings that share no bucket: that of one part."""
        return self._geometry.overlaps()

    @property
    def mixture(self) -> Mixture:
        """A string owns the hyperplanes through its bucket in each part."""
        plane = self.mechanism.geometry
        return Mixture(plane.P, self.mechanism.parts * plane.support_size, self.mechanism.messages)

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
        parts = held.reshape(self.mechanism.parts, -1)
        return np.concatenate([self._geometry.draw_counters(part, generator) for part in parts])
