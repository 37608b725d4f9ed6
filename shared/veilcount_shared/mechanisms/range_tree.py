"""Ranges of a number: a tree over 256 buckets, of which a report tells one level [CKS19; HRMS10].

Every node has four children, so the levels have 4, 16, 64 and 256 nodes. The device draws a level
uniformly, whatever the number is, and reports the number's node there through the level's own
two-level mechanism, at full epsilon. A message names its level, so its probability is a quarter of
what it is in that mechanism, for every number alike: the whole keeps epsilon exactly, without loss.

A level's mechanism is the subset of one or the geometry with the least variance, so that a message
is one short integer, the aggregator counts messages as they are, and the whole distribution can be
enumerated.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any

from ..epsilon import exp_lower
from ..randomness import RandomSource
from .interface import NumberedMessages
from .projective_geometry import ProjectiveGeometry
from .selection import projective_orders, projective_variance, subset_variance
from .square_wave import BUCKET_BITS, BUCKETS, find_bucket
from .subset_selection import SubsetSelection

BRANCH_BITS = 2
LEVEL_BITS = range(BRANCH_BITS, BUCKET_BITS + 1, BRANCH_BITS)  # log2 of each level's nodes
MAX_LEVEL_CELLS = 4096  # counters the server keeps for one level

LevelMechanism = SubsetSelection | ProjectiveGeometry


@dataclass(frozen=True, slots=True)
class RangeTree(NumberedMessages):
    """The mechanisms of the levels, from 4 nodes to 256.

    Message m is number m - starts[l] of level l, the last with starts[l] <= m; there it is the
    reported node itself (a subset of one) or a hyperplane's number. A tally counts messages.
    """

    levels: tuple[LevelMechanism, ...]
    starts: tuple[int, ...] = field(init=False)
    messages: int = field(init=False)

    def __post_init__(self) -> None:
        if [level.inputs for level in self.levels] != [1 << bits for bits in LEVEL_BITS]:
            raise ValueError("give levels of 4, 16, 64 and 256 nodes")
        if len({level.epsilon for level in self.levels}) > 1:
            raise ValueError("every level reports at the same epsilon")
        if any(isinstance(level, SubsetSelection) and level.w > 1 for level in self.levels):
            raise ValueError("a level's subsets have one member: its messages are 0, 1, 2, ...")
        starts = tuple(accumulate((level.messages for level in self.levels), initial=0))
        object.__setattr__(self, "starts", starts[:-1])
        object.__setattr__(self, "messages", starts[-1])

    @classmethod
    def for_epsilon(cls, epsilon: Fraction) -> RangeTree:
        """Return the levels with the least variance at this epsilon."""
        return _best(epsilon)

    @property
    def inputs(self) -> int:
        return BUCKETS

    @property
    def epsilon(self) -> Fraction:
        return self.levels[0].epsilon

    def node(self, level: int, bucket: int) -> int:
        """Return the node of a level that holds a bucket."""
        return bucket >> BUCKET_BITS - LEVEL_BITS[level]

    def randomize(self, grid: int, randomness: RandomSource) -> int:
        """Return the message of a point of the number's grid."""
        level = randomness.below(len(self.levels))
        node = self.node(level, find_bucket(grid))
        return self.starts[level] + self.levels[level].randomize(node, randomness)

    def cover(self, randomness: RandomSource) -> int:
        """Return a cover of a level that is drawn as a device draws it.

        Uniform over all messages would hardly ever hide a report of the upper levels, which have
        few messages of their own.
        """
        level = randomness.below(len(self.levels))
        return self.starts[level] + self.levels[level].cover(randomness)

    def level(self, message: int) -> int:
        """Return the level of a message."""
        return bisect_right(self.starts, message) - 1

    def supports(self, message: int, bucket: int) -> bool:
        """Whether the message is in the set of the bucket's node on the message's level."""
        level = self.level(message)
        mechanism, node = self.levels[level], self.node(level, bucket)
        number = message - self.starts[level]
        return (
            number == node
            if isinstance(mechanism, SubsetSelection)
            else mechanism.supports(number, node)
        )

    def describe(self) -> str:
        return (
            f"names a node of a tree over {self.inputs} equal parts of the range, on one of"
            f" {len(self.levels)} levels drawn beforehand: by that level's own randomizer"
        )

    def canonical(self) -> dict[str, Any]:
        levels = [level.canonical() for level in self.levels]
        return {"design": "hierarchy", "levels": levels, "buckets": BUCKETS}

    def tables(self) -> dict[str, Any]:
        levels = [level.tables() for level in self.levels]
        return {**NumberedMessages.tables(self), "starts": list(self.starts), "levels": levels}


@lru_cache(maxsize=256)
def _best(epsilon: Fraction) -> RangeTree:
    return RangeTree(tuple(_level(1 << bits, epsilon) for bits in LEVEL_BITS))


def _level(k: int, epsilon: Fraction) -> LevelMechanism:
    """Return the subset of one, or the plane (the first of the best) that beats its variance."""
    e = exp_lower(epsilon)
    candidates = [
        (projective_variance(k, q, t, e), q, t) for q, t in projective_orders(k, e, MAX_LEVEL_CELLS)
    ]
    if not candidates or min(candidates)[0] >= subset_variance(k, 1, e):
        return SubsetSelection.for_epsilon(epsilon, k, 1)
    _, q, t = min(candidates)
    return ProjectiveGeometry.for_epsilon(epsilon, k, q, t)
