"""Drawn bit, for any number of values of one person: one of them is drawn, and its bit randomized.

The value is drawn for each report, whatever is ticked, and named in the message: so the message's
probability is that of a randomized bit [War65] divided by the number of values, for all inputs
alike, and the whole keeps epsilon exactly. Message 2 v + b is bit b of value v.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..epsilon import satisfies, threshold
from ..errors import EpsilonError
from ..randomness import WORDS, RandomSource
from .interface import NumberedMessages


@dataclass(frozen=True, slots=True)
class DrawnBit(NumberedMessages):
    """One configuration: k values, a bit that is sent as it is with probability a / 2^64.

    An input is a mask of the ticked values.
    """

    k: int
    a: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        if not satisfies(self.a, self.epsilon, 1, 2):
            raise EpsilonError(self.epsilon, f"bit k={self.k} a={self.a} exceeds it")

    @classmethod
    def for_epsilon(cls, epsilon: Fraction, k: int) -> DrawnBit:
        """Return the configuration that uses all of epsilon."""
        return cls(k, threshold(epsilon, 1, 2), epsilon)

    @property
    def inputs(self) -> int:
        return 1 << self.k

    @property
    def messages(self) -> int:
        return 2 * self.k

    @property
    def bit(self) -> Fraction:
        """The probability that a bit is sent as it is."""
        return Fraction(self.a, WORDS)

    @property
    def P(self) -> Fraction:
        """The probability that a report says of a ticked value that it is ticked."""
        return self.bit / self.k

    @property
    def Q(self) -> Fraction:
        """The probability that it says so of a value that is not."""
        return (1 - self.bit) / self.k

    def randomize(self, x: int, randomness: RandomSource) -> int:
        """Return the message of a mask of ticked values."""
        value = randomness.below(self.k)
        is_ticked = x >> value & 1
        return 2 * value + (is_ticked if randomness.bernoulli(self.a) else 1 - is_ticked)

    def cover(self, randomness: RandomSource) -> int:
        """Return a uniform message: each is the least likely one of some input."""
        return randomness.below(self.messages)

    def describe(self) -> str:
        return (
            f"is about one of {self.k} values, drawn: whether it is ticked, true with probability"
            f" {float(self.bit):.6f}"
        )

    def describe_message(self, message: int, labels: Sequence[object]) -> str:
        value, bit = divmod(message, 2)
        return f"{labels[value]}: {'ticked' if bit else 'not ticked'}"

    def canonical(self) -> dict[str, Any]:
        return {"design": "bit", "k": self.k, "a": str(self.a)}
