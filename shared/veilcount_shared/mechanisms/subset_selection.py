"""Subset selection: an input's set is all w-subsets of the k inputs that contain it [YB18; WHW+16].

w = 1 is classic k-ary randomized response, with k = 2 Warner's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ..epsilon import satisfies, threshold
from ..errors import EpsilonError
from ..randomness import WORDS, RandomSource
from .subset_messages import SubsetMessages, uniform_mask


@dataclass(frozen=True, slots=True)
class SubsetSelection(SubsetMessages):
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
        self._set_encoding()

    @classmethod
    def for_epsilon(cls, epsilon: Fraction, k: int, w: int) -> SubsetSelection:
        """Return the configuration that uses all of epsilon."""
        return cls(k, w, threshold(epsilon, w, k), epsilon)

    @property
    def inputs(self) -> int:
        return self.k

    @property
    def ground(self) -> int:
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

    def describe(self) -> str:
        return (
            f"holds the true value with probability {float(self.P):.6f}, any given other value"
            f" with {float(self.Q):.6f}"
        )

    def canonical(self) -> dict[str, Any]:
        return {"design": "subset", "k": self.k, "w": self.w, "a": str(self.a)}

    # Both draw a uniform subset of the k - 1 inputs that are not x: numbered 0..k-2, then moved up
    # by one from x on.

    def _draw_mask(self, x: int, others: int, *, inside: bool, randomness: RandomSource) -> int:
        mask = uniform_mask(self.k - 1, others, randomness)
        upper = mask >> x
        return (mask ^ upper << x) | (upper << 1 | inside) << x

    def _draw_members(self, x: int, others: int, *, inside: bool, randomness: RandomSource) -> int:
        members = {member + (member >= x) for member in randomness.sample(self.k - 1, others)}
        if inside:
            members.add(x)
        return self.packed(members)
