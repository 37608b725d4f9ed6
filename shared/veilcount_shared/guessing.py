"""The probability of guessing which of two values was answered: epsilon as people can judge it.

Which of two values a person gave compares data sets that differ in a value, so an add-remove
epsilon counts twice. A device randomizes each answer on its own, and its answers compose [KOV15,
Thm 3.1]. A curator may release many periods as one number, in which a person's answers add up: of
those only the plain sum holds (group privacy), which the bound for independent answers falls short
of.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil

from .collection import Collection
from .composition import MAX_ANSWERS, guessing_probability

TWENTY = 20
_guess = lru_cache(maxsize=256)(guessing_probability)


def two_values_epsilon(collection: Collection, epsilon: Fraction) -> Fraction:
    """Return what one of the collection's epsilons amounts to between two values."""
    return epsilon * collection.substitution_factor


def distinguishing_probability(collection: Collection, answers: int = 1) -> Fraction:
    """Return an upper bound on guessing right which of two equally likely values was answered."""
    epsilon = two_values_epsilon(collection, collection.unit_epsilon)
    if collection.trust.reveals:
        return _guess(epsilon * answers, 1)
    return _guess(epsilon, answers) if answers <= MAX_ANSWERS else Fraction(1)


def times_in_twenty(chance: Fraction) -> str:
    """Return how many of twenty guesses are right, rounded up.

    Above 19 with as many decimals as keep it below 20: a chance below 1 is not certainty.
    """
    for decimals in range(7):
        rounded = Fraction(ceil(chance * TWENTY * 10**decimals), 10**decimals)
        if rounded < TWENTY:
            return f"{float(rounded):.{decimals}f}"
    return str(TWENTY)


def percent(chance: Fraction) -> str:
    """Return a chance as a percentage, rounded up, with as many decimals as keep it below 100."""
    for decimals in range(1, 7):
        rounded = Fraction(ceil(chance * 100 * 10**decimals), 10**decimals)
        if rounded < 100:  # noqa: PLR2004 - percent
            return f"{float(rounded):.{decimals}f}".removesuffix(".0") + " %"
    return "100 %"
