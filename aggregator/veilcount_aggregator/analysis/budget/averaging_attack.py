"""The averaging attack: how often someone who sees T answers guesses right.

Fresh noise averages out; a frozen answer is the same answer however often it is seen. The guesser
knows the mechanism and holds both truths equally likely; nobody does better [KOV15, Thm 3.1].

Which of two values a person gave compares data sets that differ in a value, so an add-remove
epsilon counts twice. A device randomizes each answer on its own, and its answers compose. A curator
may release many periods as one number, in which a person's answers add up: of those only the plain
sum holds (group privacy), which the bound for independent answers falls short of.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from veilcount_shared import Collection
from veilcount_shared.collection import Model
from veilcount_shared.composition import MAX_ANSWERS, guessing_probability
from veilcount_shared.mechanisms import Randomizer

from .composition import losses_of

SEEN = (1, 7, 30, 90, 365)
FINE = 10**9  # chances are rounded up to so many parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """The chance of a right guess after so many answers, rounded up."""

    answers: int
    fresh: Fraction  # whatever the mechanism, at this epsilon
    mechanism: Fraction  # by this mechanism
    frozen: Fraction


def guessing_curve(mechanism: Randomizer, most: int) -> tuple[Guess, ...]:
    """Return the curve up to a person's number of answers, which is its last point."""
    seen = sorted({*(times for times in SEEN if times < most), min(most, MAX_ANSWERS)})
    return tuple(guessing_chance(mechanism, times) for times in seen)


def guessing_chance(mechanism: Randomizer, times: int) -> Guess:
    """Return one point of the curve: half of 1 + the distance in total variation, delta at 0."""
    fresh = guessing_probability(mechanism.epsilon, times)
    own = (1 + losses_of(mechanism, times).delta(0.0)) / 2
    return Guess(
        answers=times,
        fresh=fresh,
        mechanism=min(fresh, Fraction(ceil(own * FINE), FINE)),
        frozen=guessing_probability(mechanism.epsilon, 1),
    )


def two_values_epsilon(collection: Collection, epsilon: Fraction) -> Fraction:
    """Return what one of the collection's epsilons amounts to between two values."""
    return epsilon * collection.substitution_factor


def distinguishing_probability(collection: Collection, answers: int = 1) -> Fraction:
    """Return an upper bound on guessing right which of two equally likely values was answered."""
    each = two_values_epsilon(collection, collection.unit_epsilon)
    if collection.model is Model.CENTRAL:
        return guessing_probability(each * answers, 1)
    return guessing_probability(each, answers) if answers <= MAX_ANSWERS else Fraction(1)
