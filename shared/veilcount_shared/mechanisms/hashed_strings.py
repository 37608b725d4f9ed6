"""Open strings: each device reports one hashed bucket of its string, of several [BS15, BNST17].

A string has a bucket in each part of the devices: two halves, or a part for each length of its
beginning. The device draws a part, whatever its string is, and reports its bucket there by a
projective geometry, at full epsilon. A message names its part, so its probability is that in the
geometry divided by the number of parts, for every string alike: the whole keeps epsilon exactly,
without loss.

Two strings that share a bucket in one part hardly ever share one in another, so a string that
nobody has is not taken for a frequent one: it would have to be frequent in all parts.
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


@dataclass(frozen=True, slots=True)
class HashedStrings(NumberedMessages):
    """The geometry of one part's buckets; message m of part g is number g * cells + m.

    An input is one number, with the bucket of each part as a digit, that of part 0 the highest.
    """

    geometry: ProjectiveGeometry
    parts: int

    def __post_init__(self) -> None:
        if self.geometry.k & (self.geometry.k - 1):
            raise ValueError(f"{self.geometry.k} buckets: give a power of two")

    @classmethod
    def for_epsilon(cls, epsilon: Fraction, bucket_bits: int, parts: int) -> HashedStrings:
        """Return the geometry with the least variance at this epsilon."""
        return cls(_best(epsilon, 1 << bucket_bits), parts)

    @property
    def k(self) -> int:
        """The number of buckets of a part."""
        return self.geometry.k

    @property
    def inputs(self) -> int:
        """Part and bucket: what a device reports once it has drawn its part."""
        return self.parts * self.k

    @property
    def messages(self) -> int:
        return self.parts * self.geometry.messages

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

    def bucket(self, x: int, part: int) -> int:
        """Return the bucket of an input in a part."""
        return (x >> (self.parts - 1 - part) * (self.k.bit_length() - 1)) % self.k

    def randomize(self, x: int, randomness: RandomSource) -> int:
        """Return the message of the buckets of a string."""
        part = randomness.below(self.parts)
        bucket = self.bucket(x, part)
        return part * self.geometry.messages + self.geometry.randomize(bucket, randomness)

    def cover(self, randomness: RandomSource) -> int:
        """Return a cover of a part that is drawn as a device draws it."""
        part = randomness.below(self.parts)
        return part * self.geometry.messages + self.geometry.cover(randomness)

    def supports(self, message: int, x: int) -> bool:
        """Whether the message is in the set of the input's bucket in the message's part."""
        part, hyperplane = divmod(message, self.geometry.messages)
        return self.geometry.supports(hyperplane, self.bucket(x, part))

    def describe(self) -> str:
        return (
            f"holds one of {self.parts} buckets of the true string, drawn, with probability"
            f" {float(self.P):.6f}, any given other of {self.k:,} buckets with"
            f" {float(self.geometry.Q):.6f}"
        )

    def canonical(self) -> dict[str, Any]:
        return {"design": "hashed", "parts": self.parts, "part": self.geometry.canonical()}

    def tables(self) -> dict[str, Any]:
        return {**NumberedMessages.tables(self), "part": self.geometry.tables()}


@lru_cache(maxsize=256)
def _best(epsilon: Fraction, buckets: int) -> ProjectiveGeometry:
    best = best_projective(buckets, exp_lower(epsilon))
    if best is None:  # never: the geometry over two elements is always small enough
        raise ValueError(f"epsilon = {epsilon}: no geometry has {buckets} points")
    _, q, t = best
    return ProjectiveGeometry.for_epsilon(epsilon, buckets, q, t)
