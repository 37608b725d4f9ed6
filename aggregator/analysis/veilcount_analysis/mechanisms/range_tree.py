"""Ranges of a number on the server: all levels of the tree, read together by least squares."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random import Generator

from veilcount_shared.composition import Overlap
from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import RangeTree

from ..estimation.confidence_intervals import Counts, Floats
from ..estimation.confidence_sequences import LookCount
from ..estimation.estimator import Estimator
from ..estimation.range_queries import LevelResponse, RangeEstimator, TreeReading, estimate_ranges
from ..estimation.results import IntervalTerms
from ..estimation.weighted_estimator import WeightedMean
from ..series.packed_rows import Counters
from .distribution import buckets
from .handler import GroupHandler, NumberHandler, group_handler_of, handles
from .sampling import Ints, scattered


@handles(RangeTree)
class RangeTreeHandler(NumberHandler[RangeTree]):
    """Every device reports its number's node on a level that it draws."""

    def describe(self) -> str:
        tree = self.mechanism
        return f"tree: one of {len(tree.levels)} levels over {tree.inputs} buckets"

    @property
    def levels(self) -> list[GroupHandler[Any]]:
        """The handlers of the levels' mechanisms."""
        return [group_handler_of(level) for level in self.mechanism.levels]

    def estimate(
        self, domain: Number, counters: Counts, terms: IntervalTerms, covers: int = 0
    ) -> RangeEstimator:
        return estimate_ranges(
            tree_reading(self.mechanism),
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
        numbers, among = tree_reading(self.mechanism).numbers, self.cover_reports(covers)
        return WeightedMean.from_counters(domain, counters, numbers, among)

    @property
    def cover_chances(self) -> Floats:
        """A cover draws its level as a device does, then one of the level's messages."""
        levels = self.mechanism.levels
        return np.concatenate(
            [np.full(level.messages, 1 / level.messages / len(levels)) for level in levels]
        )

    def noise_variance(self) -> float:
        """Return that of the share of a quarter of the range: the first level's node.

        Few devices report that level; that they are drawn counts as noise, at most 3/16 for each.
        """
        levels, first = len(self.mechanism.levels), self.levels[0]
        nodes: int = first.mechanism.inputs
        return levels * first.noise_variance() + (levels - 1) * (1 - 1 / nodes) / nodes

    def cover_variance(self) -> float:
        """Return that of the share of a quarter; a cover counts there if it is of that level."""
        levels, first = len(self.mechanism.levels), self.levels[0]
        nodes: int = first.mechanism.inputs
        return levels * first.cover_variance() + (levels - 1) / nodes**2

    def reach(self) -> tuple[float, float]:
        """Return that of reports that all choose one level."""
        push, pull = self.levels[0].reach()
        return push * len(self.mechanism.levels), pull * len(self.mechanism.levels)

    def overlaps(self) -> tuple[Overlap, ...]:
        return tuple(overlap for level in self.levels for overlap in level.overlaps())

    def draw_inputs(self, points: Ints, generator: Generator) -> Ints:  # noqa: ARG002 - nothing is drawn
        return buckets(points)

    def draw_messages(self, inputs: Ints, generator: Generator) -> Ints:
        tree = self.mechanism
        drawn = generator.integers(len(tree.levels), size=len(inputs))
        sent = np.empty(len(inputs), np.int64)
        for place, level in enumerate(self.levels):
            here = drawn == place
            nodes = inputs[here] // (tree.inputs // level.mechanism.inputs)
            sent[here] = tree.starts[place] + level.draw_messages(nodes, generator)
        return sent

    def draw_counters(self, held: Ints, generator: Generator) -> Counters:
        """Return how many reports name each message: every device draws its level by itself."""
        drawn = scattered(held, len(self.mechanism.levels), generator)
        parts = [
            level.draw_counters(counts.reshape(level.mechanism.inputs, -1).sum(axis=1), generator)
            for level, counts in zip(self.levels, drawn.T, strict=True)
        ]
        return np.concatenate(parts)


@lru_cache(maxsize=8)
def tree_reading(mechanism: RangeTree) -> TreeReading:
    """Return how the messages of all levels are read."""
    levels = RangeTreeHandler(mechanism).levels
    return TreeReading.from_levels(
        [
            LevelResponse.from_incidence(level.mixture.P, level.mixture.owned, level.incidence())
            for level in levels
        ]
    )
