"""What an adversary has right of a target, and what a blind guess has.

The chance is the most that a blind guess has right, but for one case in 1 / ALPHA over all that the
adversary tries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

ALPHA = 1e-4  # of one adversary in one combination, over all that it tries; everything is seeded


class Guess(NamedTuple):
    """What one way of guessing has right of one target."""

    target: str
    where: str  # between which rows
    way: str
    right: int
    of: int
    distribution: tuple[float, ...]  # of what a blind guess has right

    @property
    def p_value(self) -> float:
        return sum(self.distribution[self.right :])


class Figure(NamedTuple):
    """The best guess of an adversary at one target, and the most that chance explains."""

    target: str
    where: str
    way: str
    right: int
    of: int
    chance: int
    p_value: float

    @property
    def is_chance(self) -> bool:
        return self.right <= self.chance

    def __str__(self) -> str:
        return f"{self.right} of {self.of} ({self.chance})"


def best(guesses: Iterable[Guess]) -> dict[str, Figure]:
    """Return the best guess at each target; the chance is corrected for all of the guesses."""
    listed = list(guesses)
    listed += pooled(listed)
    alpha = ALPHA / max(len(listed), 1)
    figures: dict[str, Figure] = {}
    for guess in sorted(listed, key=lambda guess: -guess.p_value):  # the last is the least likely
        chance = _most(guess.distribution, alpha)
        figures[guess.target] = Figure(*guess[:5], chance, guess.p_value)
    return figures


def pooled(guesses: Iterable[Guess]) -> Iterator[Guess]:
    """Yield what each way has right over all periods or questions, whose draws are independent."""
    groups: dict[tuple[str, str, str], list[Guess]] = {}
    for guess in guesses:
        rows, _, _ = guess.where.partition(",")
        groups.setdefault((guess.target, rows, guess.way), []).append(guess)
    for (target, rows, way), group in groups.items():
        if len(group) > 1:
            right, of = sum(one.right for one in group), sum(one.of for one in group)
            total = np.ones(1)
            for guess in group:
                total = np.convolve(total, guess.distribution)
            yield Guess(target, f"{rows}, all", way, right, of, tuple(total.tolist()))


def _most(distribution: Sequence[float], alpha: float) -> int:
    """Return the least number that a blind guess exceeds with probability alpha at most."""
    tail = 0.0
    for number in range(len(distribution) - 1, -1, -1):
        tail += distribution[number]
        if tail > alpha:
            return number
    return 0


# -- blind guesses ---------------------------------------------------------------------------------


def blind_pairing(strata: Iterable[object]) -> tuple[float, ...]:
    """Return the distribution of what a pairing at random has right within each stratum."""
    return _blind_pairing(tuple(sorted(Counter(strata).values())))


@cache
def _blind_pairing(sizes: tuple[int, ...]) -> tuple[float, ...]:
    total = np.ones(1)
    for size in sizes:
        total = np.convolve(total, _fixed_points(size))
    return tuple(total.tolist())


@cache
def _fixed_points(size: int) -> NDArray[np.float64]:
    """Return the distribution of the number of fixed points of a random permutation."""
    derangements = [1, 0]
    for n in range(2, size + 1):
        derangements.append((n - 1) * (derangements[-1] + derangements[-2]))
    total = sum(comb(size, k) * derangements[size - k] for k in range(size + 1))
    return np.array([comb(size, k) * derangements[size - k] / total for k in range(size + 1)])


def blind_choice(persons: int, active: int, chosen: int) -> tuple[float, ...]:
    """Return the distribution of how many are rightly called active or not, so many chosen."""
    both = hypergeom.pmf(np.arange(persons + 1), persons, active, chosen)
    distribution = np.zeros(persons + 1)
    for number in range(max(0, active + chosen - persons), min(active, chosen) + 1):
        distribution[2 * number + persons - active - chosen] = both[number]
    return tuple(distribution.tolist())
