"""Open strings: each device reports one of two hashed buckets of its string [BS15, BNST17].

A string has a bucket in each of two halves of the devices. The device draws a half, whatever its
string is, and reports its bucket there by a projective geometry, at full epsilon. A message names
its half, so its probability is half of what it is in the geometry, for every string alike: the
whole keeps epsilon exactly, without loss.

Two strings that share a bucket in one half hardly ever share one in the other, so a string that
nobody has is not taken for a frequent one: it would have to be frequent in both halves.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ..epsilon import exp_lower
from ..randomness import RandomSource
from .interface import NumberedMessages
from .projective_geometry import ProjectiveGeometry
from .selection import best_projective

HALVES = 2


@dataclass(frozen=True, slots=True)
class HashedStrings(NumberedMessages):
    """The geometry of one half's buckets; message m of half g is number g * cells + m.

    An input is a pair of buckets as one number, that of half 0 in the high bits.
    """

    geometry: ProjectiveGeometry

    def __post_init__(self) -> None:
        if self.geometry.k & (self.geometry.k - 1):
            raise ValueError(f"{self.geometry.k} buckets: give a power of two")

    @classmethod
    def for_epsilon(cls, epsilon: Fraction, bucket_bits: int) -> HashedStrings:
        """Return the geometry with the least variance at this epsilon."""
        return _best(epsilon, 1 << bucket_bits)

    @property
    def k(self) -> int:
        """The number of buckets of a half."""
        return self.geometry.k

    @property
    def inputs(self) -> int:
        """Half and bucket: what a device reports once it has drawn its half."""
        return HALVES * self.k

    @property
    def messages(self) -> int:
        return HALVES * self.geometry.messages

    @property
    def epsilon(self) -> Fraction:
        return self.geometry.epsilon

    @property
    def P(self) -> Fraction:
        """The probability that a report supports its own string."""
        return self.geometry.P

    @property
    def Q(self) -> Fraction:
        """The probability that a report supports a given other string, whose bucket is random."""
        P, Q = self.geometry.P, self.geometry.Q
        return Q + (P - Q) / self.k

    def bucket(self, x: int, half: int) -> int:
        """Return the bucket of an input in a half."""
        return x // self.k if half == 0 else x % self.k

    def randomize(self, x: int, randomness: RandomSource) -> int:
        """Return the message of a pair of buckets."""
        half = randomness.below(HALVES)
        bucket = self.bucket(x, half)
        return half * self.geometry.messages + self.geometry.randomize(bucket, randomness)

    def supports(self, message: int, x: int) -> bool:
        """Whether the message is in the set of the input's bucket in the message's half."""
        half, hyperplane = divmod(message, self.geometry.messages)
        return self.geometry.supports(hyperplane, self.bucket(x, half))

    def describe(self) -> str:
        return (
            f"holds one of two buckets of the true string, drawn, with probability"
            f" {float(self.P):.6f}, any given other of {self.k:,} buckets with"
            f" {float(self.geometry.Q):.6f}"
        )

    def canonical(self) -> dict[str, Any]:
        return {"design": "hashed", "halves": HALVES, "half": self.geometry.canonical()}


@lru_cache(maxsize=256)
def _best(epsilon: Fraction, buckets: int) -> HashedStrings:
    found = best_projective(buckets, exp_lower(epsilon))
    if found is None:  # never: the geometry over two elements is always small enough
        raise ValueError(f"epsilon = {epsilon}: no geometry has {buckets} points")
    _, q, t = found
    return HashedStrings(ProjectiveGeometry.for_epsilon(epsilon, buckets, q, t))
