"""Set selection, for several values of one person: w-subsets that meet the person's set [WHN+18].

Who ticks fewer than `most` values is padded to exactly so many with fillers, of which there are as
many: so each set has one size in d + most elements, and how many were ticked is not visible. The
messages are w-subsets of these. Those that meet the set have probability P = a / 2^64 together,
all alike, and so have all others: the two-level mechanism with r = C(d + most, w) - C(d, w).

w is at most d - most: then any subset misses some set, and the blanket of a cover is uniform.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import Any

from ..epsilon import exp_lower, satisfies, threshold
from ..errors import EpsilonError
from ..randomness import WORDS, RandomSource
from .subset_messages import SubsetMessages

FILLER = "no further answer"


@dataclass(frozen=True, slots=True)
class SetSelection(SubsetMessages):
    """One configuration: k values, `most` ticks, subsets of w.

    An input is a mask of the ticked values, at most so many.
    """

    k: int
    most: int
    w: int
    a: int
    epsilon: Fraction
    messages: int = field(init=False)
    bits: int = field(init=False)
    label_bits: int = field(init=False)
    masked: bool = field(init=False)

    def __post_init__(self) -> None:
        self._set_encoding()
        in_range = 0 < self.w <= self.k - self.most
        if not (in_range and satisfies(self.a, self.epsilon, self.owned, self.messages)):
            shape = f"set k={self.k} most={self.most} w={self.w} a={self.a}"
            raise EpsilonError(self.epsilon, f"{shape} exceeds it")

    @classmethod
    def for_epsilon(cls, epsilon: Fraction, k: int, most: int, w: int = 0) -> SetSelection:
        """Return the configuration that uses all of epsilon; by default with the best w."""
        w = w or best_size(k, most, exp_lower(epsilon))
        owned, messages = _owned(k, most, w)
        return cls(k, most, w, threshold(epsilon, owned, messages), epsilon)

    @property
    def ground(self) -> int:
        """The values, then the fillers."""
        return self.k + self.most

    @property
    def inputs(self) -> int:
        return 1 << self.k

    @property
    def owned(self) -> int:
        """The number of messages that meet a set."""
        return _owned(self.k, self.most, self.w)[0]

    @property
    def P(self) -> Fraction:
        """The probability that a report's subset contains a ticked value."""
        return Fraction(self.a, WORDS) * comb(self.ground - 1, self.w - 1) / self.owned

    @property
    def Q(self) -> Fraction:
        """The probability that a report's subset contains a value that is not ticked."""
        inside, missing = Fraction(self.a, WORDS), comb(self.k - 1, self.w - 1)
        meeting = comb(self.ground - 1, self.w - 1) - missing
        return inside * meeting / self.owned + (1 - inside) * missing / comb(self.k, self.w)

    def padded(self, x: int) -> tuple[int, ...]:
        """Return the ticked values and the first fillers, `most` elements in all."""
        ticked = [value for value in range(self.k) if x >> value & 1]
        return (*ticked, *range(self.k, self.ground - len(ticked)))

    def randomize(self, x: int, randomness: RandomSource) -> int:
        """Return the message of a mask of ticked values."""
        own = self.padded(x)
        others = sorted(set(range(self.ground)).difference(own))
        hits = self._draw_hits(randomness) if randomness.bernoulli(self.a) else 0
        members = [own[place] for place in randomness.sample(self.most, hits)]
        members += [others[place] for place in randomness.sample(self.k, self.w - hits)]
        return members[0] if self.w == 1 else self.packed(members)

    def _draw_hits(self, randomness: RandomSource) -> int:
        """Return how many elements of its own a uniform subset that meets the set has."""
        drawn = randomness.below(self.owned)
        for hits in range(1, self.w):
            drawn -= comb(self.most, hits) * comb(self.k, self.w - hits)
            if drawn < 0:
                return hits
        return self.w

    def describe(self) -> str:
        return (
            f"holds a ticked value with probability {float(self.P):.6f}, any that is not ticked"
            f" with {float(self.Q):.6f}"
        )

    def describe_message(self, message: int, labels: Sequence[object]) -> str:
        names = [str(labels[x]) for x in self.members(message) if x < self.k]
        fillers = [FILLER] if len(names) < self.w else []
        return " or ".join([*names, *fillers])

    def canonical(self) -> dict[str, Any]:
        return {"design": "set", "k": self.k, "most": self.most, "w": self.w, "a": str(self.a)}


def _owned(k: int, most: int, w: int) -> tuple[int, int]:
    """Return how many of the messages meet a set, and how many there are."""
    messages = comb(k + most, w)
    return messages - comb(k, w), messages


@lru_cache(maxsize=1024)
def best_size(k: int, most: int, e: Fraction) -> int:
    """Return the size of subsets with the least variance of a rare value; of equals the least."""
    return min(range(1, k - most + 1), key=lambda w: _variance(k, most, w, e))


def _variance(k: int, most: int, w: int, e: Fraction) -> Fraction:
    """Return n times the variance of the share of a value that nobody ticks."""
    owned, messages = _owned(k, most, w)
    whole = e * owned + messages - owned
    holding, missing = comb(k + most - 1, w - 1), comb(k - 1, w - 1)
    hit, other = e * holding / whole, (e * (holding - missing) + missing) / whole
    return other * (1 - other) / (hit - other) ** 2
