"""The exact distribution of a function of random draws, by running it over every outcome."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import TypeVar

from veilcount_shared.randomness import WORDS, RandomSource

Result = TypeVar("Result", bound=Hashable)


class EnumeratedRandomSource(RandomSource):
    """Draws the outcomes of one branch, and notes which branches follow.

    A branch is the list of (outcome, number of outcomes) of the draws so far; a draw beyond its end
    takes outcome 0 and lengthens it. Draws with a single possible outcome open nothing.
    """

    __slots__ = ("_drawn", "branch", "weight")

    def __init__(self, branch: list[tuple[int, int]]) -> None:
        self.branch = branch
        self.weight = Fraction(1)
        self._drawn = 0

    def word(self) -> int:
        """Refuse: whoever takes raw words has left the two exact draws."""
        raise TypeError("a randomizer draws by below() and bernoulli() only")

    def below(self, n: int) -> int:
        """Return the branch's outcome of a uniform draw."""
        self.weight /= n
        return self._fall(n)

    def bernoulli(self, numerator: int, denominator: int = WORDS) -> bool:
        """Return the branch's outcome of a biased coin."""
        if not 0 <= numerator <= denominator:
            raise ValueError(f"{numerator} of {denominator} is no probability")
        if numerator in {0, denominator}:
            return numerator > 0
        heads = not self._fall(2)
        self.weight *= Fraction(numerator if heads else denominator - numerator, denominator)
        return heads

    def _fall(self, outcomes: int) -> int:
        if outcomes == 1:
            return 0
        if self._drawn == len(self.branch):
            self.branch.append((0, outcomes))
        fallen, expected = self.branch[self._drawn]
        if outcomes != expected:
            raise ValueError("the same outcomes must lead to the same draws")
        self._drawn += 1
        return fallen


def enumerate_distribution(function: Callable[[RandomSource], Result]) -> dict[Result, Fraction]:
    """Return the probability of every result, depth first over all branches."""
    return enumerate_branches(function, EnumeratedRandomSource)


def enumerate_branches(
    function: Callable[[RandomSource], Result], source: type[EnumeratedRandomSource]
) -> dict[Result, Fraction]:
    """Return the weight of every result over the branches that a source takes."""
    weights: dict[Result, Fraction] = {}
    branch: list[tuple[int, int]] | None = []
    while branch is not None:
        randomness = source(branch)
        result = function(randomness)
        weights[result] = weights.get(result, Fraction(0)) + randomness.weight
        branch = _next(randomness.branch)
    return weights


def _next(branch: list[tuple[int, int]]) -> list[tuple[int, int]] | None:
    while branch:
        fallen, outcomes = branch.pop()
        if fallen + 1 < outcomes:
            return [*branch, (fallen + 1, outcomes)]
    return None
