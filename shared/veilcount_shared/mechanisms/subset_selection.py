"""Subset selection: an input's set is all w-subsets of the k inputs that contain it [YB18; WHW+16].

w = 1 is classic k-ary randomized response, with k = 2 Warner's. The message is, for w = 1, the
reported input itself; otherwise the subset, as a k-bit mask or as its sorted members packed end to
end, whichever is shorter for this k and w (the mask where equal). Sorted or mask: in which order
the members were drawn is never visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import comb
from typing import Any

from ..epsilon import satisfies, threshold
from ..errors import EpsilonError
from ..randomness import WORDS, RandomSource


@dataclass(frozen=True, slots=True)
class SubsetSelection:
    """One configuration: k inputs, subsets of w, P = a / 2^64."""

    k: int
    w: int
    a: int
    epsilon: Fraction
    messages: int = field(init=False)
    bits: int = field(init=False)
    label_bits: int = field(init=False)
    masked: bool = field(init=False)

    def __post_init__(self) -> None:
        if not satisfies(self.a, self.epsilon, self.w, self.k):
            raise EpsilonError(self.epsilon, f"subset k={self.k} w={self.w} a={self.a} exceeds it")
        label_bits = (self.k - 1).bit_length()
        masked = self.w > 1 and self.k <= self.w * label_bits
        _set(self, "messages", comb(self.k, self.w))
        _set(self, "label_bits", label_bits)
        _set(self, "masked", masked)
        _set(self, "bits", self.k if masked else self.w * label_bits)

    @classmethod
    def for_epsilon(cls, epsilon: Fraction, k: int, w: int) -> SubsetSelection:
        """Return the configuration that uses all of epsilon."""
        return cls(k, w, threshold(epsilon, w, k), epsilon)

    @property
    def inputs(self) -> int:
        return self.k

    @property
    def counters(self) -> int:
        return self.k

    @property
    def P(self) -> Fraction:
        """The probability that a report's subset contains the input."""
        return Fraction(self.a, WORDS)

    @property
    def Q(self) -> Fraction:
        """The probability that a report's subset contains a given other input."""
        inside, outside = Fraction(self.w - 1, self.k - 1), Fraction(self.w, self.k - 1)
        return self.P * inside + (1 - self.P) * outside

    def randomize(self, x: int, randomness: RandomSource) -> int:
        """Return the message of input x."""
        inside = randomness.bernoulli(self.a)
        if self.w == 1:
            if inside:
                return x
            other = randomness.below(self.k - 1)
            return other + (other >= x)
        others = self.w - inside
        if self.masked:
            return self._draw_mask(x, others, inside=inside, randomness=randomness)
        return self._draw_members(x, others, inside=inside, randomness=randomness)

    def cover(self, randomness: RandomSource) -> int:
        """Return a uniform subset: each misses some input, all with one probability."""
        if self.w == 1:
            return randomness.below(self.k)
        if self.masked:
            return _uniform_mask(self.k, self.w, randomness)
        return self._packed(randomness.sample(self.k, self.w))

    def members(self, message: int) -> tuple[int, ...]:
        """Return the inputs that a message supports, ascending."""
        if self.w == 1:
            return (message,)
        if self.masked:
            return tuple(x for x in range(self.k) if message >> x & 1)
        low = (1 << self.label_bits) - 1
        return tuple(message >> place * self.label_bits & low for place in range(self.w))

    def valid(self, message: int) -> bool:
        if not 0 <= message < 1 << self.bits:
            return False
        if self.masked:
            return message.bit_count() == self.w
        members = self.members(message)
        ascending = all(one < two for one, two in pairwise(members))
        return ascending and members[-1] < self.k

    def describe(self) -> str:
        return (
            f"holds the true value with probability {float(self.P):.6f}, any given other value"
            f" with {float(self.Q):.6f}"
        )

    def describe_message(self, message: int, labels: Sequence[object]) -> str:
        return " or ".join(str(labels[x]) for x in self.members(message))

    def canonical(self) -> dict[str, Any]:
        return {"design": "subset", "k": self.k, "w": self.w, "a": str(self.a)}

    def tables(self) -> dict[str, Any]:
        several = "mask" if self.masked else "members"
        encoding = "input" if self.w == 1 else several
        return {"bits": self.bits, "encoding": encoding, "label_bits": self.label_bits}

    # Both draw a uniform subset of the k - 1 inputs that are not x: numbered 0..k-2, then moved up
    # by one from x on.

    def _draw_mask(self, x: int, others: int, *, inside: bool, randomness: RandomSource) -> int:
        mask = _uniform_mask(self.k - 1, others, randomness)
        upper = mask >> x
        return (mask ^ upper << x) | (upper << 1 | inside) << x

    def _draw_members(self, x: int, others: int, *, inside: bool, randomness: RandomSource) -> int:
        members = {member + (member >= x) for member in randomness.sample(self.k - 1, others)}
        if inside:
            members.add(x)
        return self._packed(members)

    def _packed(self, members: set[int]) -> int:
        message = 0
        for member in sorted(members, reverse=True):
            message = message << self.label_bits | member
        return message


def _uniform_mask(n: int, size: int, randomness: RandomSource) -> int:
    """Return a uniform subset as a mask: `RandomSource.sample` with bits for members."""
    below, mask = randomness.below, 0
    for top in range(n - size, n):
        bit = 1 << below(top + 1)
        mask |= 1 << top if mask & bit else bit
    return mask


_set = object.__setattr__  # how a frozen dataclass fills in its derived fields
