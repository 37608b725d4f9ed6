"""A trend: how many people's boolean is true at each of d periods, at one epsilon for all of them.

The periods are split into intervals of 2^h for each level h. A person draws one level beforehand,
and k signs whose majority is + with probability e^epsilon / (e^epsilon + 1). At the end of each
interval of that level, they send the sign of the interval's net change (the value is false before
the first period) times the next unused sign, or a fair sign where nothing changed [after
Erlingsson et al. 2020, with the signs of a two-level mechanism].

Whatever the changes are, the signs sent are a prefix of the k, and the others are fair. The
probability of a prefix of length j lies between 2^(1-j) (1-P) and 2^(1-j) P, so the probabilities
of all that a person ever sends differ by a factor of at most P / (1-P) between any two histories:
epsilon holds at user level over the whole campaign. More than k changes bias the estimate, not the
guarantee: signs that are used up are replaced by fair ones.

A message is the level and a sign. Level and signs follow from the person's secret; what a device
keeps besides is how many signs are used, and the value when the interval began.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb
from typing import Any, NoReturn

from ..epsilon import satisfies, threshold
from ..errors import EpsilonError, TrustModelError
from ..randomness import WORDS, RandomSource
from .interface import NumberedMessages

MAX_CHANGES = 63  # signs of a person: one word of state
MAX_PERIODS = 1 << 16


@dataclass(frozen=True, slots=True)
class TrendState:
    """What a device keeps of one person's trend: a few bits, whatever happens."""

    level: int  # public: it shows in when reports are sent
    signs: int  # a bit for each, set for +; the lowest is used first
    used: int = 0
    initial: int = 0  # the input when the interval began: 1 is true


@dataclass(frozen=True, slots=True)
class TrendMechanism(NumberedMessages):
    """One configuration: d periods, k changes, P = a / 2^64."""

    periods: int
    changes: int
    a: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        if not 1 <= self.periods <= MAX_PERIODS:
            raise ValueError(f"periods = {self.periods}: give 1 to {MAX_PERIODS:,}")
        if not (1 <= self.changes <= MAX_CHANGES and self.changes % 2):
            raise ValueError(
                f"changes = {self.changes}: give an odd number from 1 to {MAX_CHANGES}, so that"
                " the signs have a majority"
            )
        if not satisfies(self.a, self.epsilon, 1, 2):
            raise EpsilonError(self.epsilon, f"trend k={self.changes} a={self.a} exceeds it")

    @classmethod
    def for_epsilon(cls, epsilon: Fraction, periods: int, changes: int) -> TrendMechanism:
        """Return the configuration that uses all of epsilon."""
        return cls(periods, changes, threshold(epsilon, 1, 2), epsilon)

    @property
    def inputs(self) -> int:
        return 2

    @property
    def messages(self) -> int:
        return 2 * self.levels

    @property
    def levels(self) -> int:
        """The number of levels: the longest interval fits into the periods."""
        return self.periods.bit_length()

    @property
    def P(self) -> Fraction:
        """The probability that the signs' majority is +."""
        return Fraction(self.a, WORDS)

    @property
    def gap(self) -> Fraction:
        """The expectation of each sign, by which a sum of reports is divided."""
        half = self.changes - 1
        return (2 * self.P - 1) * Fraction(comb(half, half // 2), 1 << half)

    def reports(self, level: int) -> int:
        """Return how many reports a person of this level sends, one an interval."""
        return self.periods >> level

    def draw_state(self, randomness: RandomSource) -> TrendState:
        """Draw a person's level and signs, before any value is known."""
        level = randomness.below(self.levels)
        positive = randomness.bernoulli(self.a)
        signs = randomness.below(1 << self.changes)
        # Of a pattern and its complement exactly one has the drawn majority: uniform among those.
        if (2 * signs.bit_count() > self.changes) != positive:
            signs ^= (1 << self.changes) - 1
        return TrendState(level, signs)

    def last_period(self, level: int, period: int) -> int | None:
        """Return the last period of an interval, which its report is of; None: it has no end."""
        last = (period >> level << level) + (1 << level) - 1
        return last if last < self.periods else None

    def report(
        self, state: TrendState, value: int, randomness: RandomSource
    ) -> tuple[int, TrendState]:
        """Return an interval's message, and the state for the next one.

        Both belong into one transaction: a sign that is sent twice, for different changes, would
        cost epsilon again.
        """
        if value == state.initial or state.used == self.changes:
            sign, after = randomness.below(2), replace(state, initial=value)
        else:
            drawn = state.signs >> state.used & 1
            sign = drawn if value else 1 - drawn
            after = replace(state, used=state.used + 1, initial=value)
        return 2 * state.level + sign, after

    def randomize(self, x: int, randomness: RandomSource) -> int:
        """Return the first report of a person whose value becomes x in the first interval."""
        return self.report(self.draw_state(randomness), x, randomness)[0]

    def cover(self, randomness: RandomSource) -> NoReturn:  # noqa: ARG002 - refused
        """Refuse: a person's signs go into several batches, and what they share reveals them."""
        raise TrustModelError("trend", "its signs depend on each other: they cannot be shuffled")

    def describe(self) -> str:
        return (
            f"reports a rise or a fall at the end of intervals of one of {self.levels} lengths,"
            " drawn beforehand: by signs drawn once, whose majority is right with probability"
            f" {float(self.P):.6f}, or by a fair coin where nothing changed"
        )

    def describe_message(self, message: int, labels: Sequence[object]) -> str:
        level, sign = divmod(message, 2)
        was, became = (labels[0], labels[1]) if sign else (labels[1], labels[0])
        length = f"{1 << level} periods" if level else "one period"
        return f"over {length}: from {was} to {became}, or by chance"

    def canonical(self) -> dict[str, Any]:
        """Return the fingerprinted fields."""
        return {
            "design": "trend",
            "periods": self.periods,
            "changes": self.changes,
            "a": str(self.a),
        }
