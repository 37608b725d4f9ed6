"""Randomness: how noise is drawn, and what it needs of its source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from math import log, sinh
from typing import cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from veilcount_analysis.releases import DiscreteLaplaceNoise
from veilcount_shared.epsilon import exp_lower
from veilcount_shared.mechanisms import SubsetSelection

from ..client.privacy.paired_runs import ConstantSource
from .claim_harness import claim
from .exact_noise import laplace

LAPLACE = "aggregator/analysis/veilcount_analysis/releases/discrete_laplace.py"
SOURCE = "shared/veilcount_shared/randomness.py"
HALF, ONE = Fraction(1, 2), Fraction(1)
MOST = 40  # the largest geometric number that is enumerated


class EveryPair:
    """A generator whose pairs of geometric numbers are all those of some numbers."""

    def __init__(self, numbers: range) -> None:
        self.pairs = np.stack(np.meshgrid(numbers, numbers)).reshape(2, -1)

    def geometric(self, p: float, size: tuple[int, int]) -> NDArray[np.int64]:
        assert abs(p - 1 / 2) < 1e-12
        assert size == self.pairs.shape
        return self.pairs


def drawn(numbers: range) -> dict[int, Fraction]:
    """Return what the product draws at epsilon = ln 2, from these geometric numbers alone."""
    source = EveryPair(numbers)
    noise = DiscreteLaplaceNoise(1 / log(2)).draw(len(numbers) ** 2, cast("Generator", source))
    chances: defaultdict[int, Fraction] = defaultdict(Fraction)
    for x, (one, two) in zip(noise, source.pairs.T.tolist(), strict=True):
        chances[x] += HALF ** (one + two)
    return chances


def atom_and_sign(x: int) -> Fraction:
    """Return the chance of 0 with (1 - q) / (1 + q), else of a fair sign and a geometric number."""
    atom = (1 - HALF) / (1 + HALF)
    return atom if x == 0 else (1 - atom) / 2 * (1 - HALF) * HALF ** (abs(x) - 1)


def sign_alone(x: int) -> Fraction:
    """Return the chance of a fair sign and a geometric number from 0, which has two signs of 0."""
    return (1 - HALF) * HALF ** abs(x) / (1 if x == 0 else 2)


Sampler = tuple[Callable[[int], Fraction], float]


@claim(
    LAPLACE,
    (atom_and_sign, 1 / sinh(log(2))),
    (sign_alone, 1 / sinh(log(2))),
    (atom_and_sign, float(1 / (1 - HALF))),
)
def test_how_discrete_laplace_noise_is_drawn(stated: Sampler, *, holds: bool) -> None:
    """The difference of two geometric numbers is discrete Laplace noise, and so is an atom at 0,
    else a fair sign and a geometric number; its mean size is 1 / sinh(epsilon) [Inusah & Kozubowski
    2006].

    The product's code over all pairs of numbers up to 40. Planted: no atom, so that 0 is as likely
    twice; and the mean size of a geometric number.
    """
    sampler, size = stated
    for x, chance in drawn(range(1, MOST + 1)).items():
        assert chance == laplace(HALF, x) * (1 - HALF ** (2 * (MOST - abs(x))))
    same = all(sampler(x) == laplace(HALF, x) for x in range(-MOST, MOST))
    mean = sum(abs(x) * laplace(HALF, x) for x in range(-3 * MOST, 3 * MOST))

    assert (same and abs(mean - size) < 1e-9) == holds


@claim(LAPLACE, range(1, MOST + 1), range(1, MOST + 1, 2))
def test_noise_extracts_a_bit_from_its_source(stated: range, *, holds: bool) -> None:
    """Additive noise that keeps epsilon is even as often as odd, within e^epsilon, and discrete
    Laplace noise within cosh(epsilon): so it needs a source from which a bit can be extracted
    [Dodis, Lopez-Alt, Mironov & Vadhan 2012].

    At epsilon = ln 2. Planted: a source of odd numbers, whose differences are even.
    """
    chances = drawn(stated)
    even, odd = (
        sum((p for x, p in chances.items() if x % 2 == parity), Fraction(0)) for parity in (0, 1)
    )

    assert (even <= odd / HALF) == holds
    assert (abs(even - odd * Fraction(5, 4)) < Fraction(1, 10**9)) == holds  # cosh(ln 2)


def keeps_one(yes: int, other: int, n: int) -> bool:
    """Whether yes and no are within e times as frequent for both inputs, over n words."""
    e = exp_lower(ONE)
    return all(a <= e * b and b <= e * a for a, b in ((yes, other), (n - yes, n - other)))


@claim(SOURCE, 4, 3)
def test_epsilon_needs_uniform_words(stated: int, *, holds: bool) -> None:
    """Epsilon needs words that are uniform: with one bit of entropy less there are sources by which
    one input sends what another never sends [Dodis & Yao 2015].

    A randomized bit of 11 in 16, from words of 4 bits; each source that is uniform over 2^4, and
    planted, each that is uniform over 2^3 of them.
    """
    bit = SubsetSelection(2, 1, 11 << 60, ONE)
    sent = [[bit.randomize(x, ConstantSource(word << 60)) for word in range(16)] for x in (0, 1)]
    n = 2**stated
    yes = [
        [sum(row[word] for word in source) for row in sent] for source in combinations(range(16), n)
    ]

    assert all(keeps_one(one, other, n) for one, other in yes) == holds
    assert ([0, n] in yes) != holds
