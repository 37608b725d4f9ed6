"""The averaging attack: how often someone who sees T answers guesses an unchanging yes or no.

Fresh noise averages out; a frozen answer is the same answer however often it is seen. The guesser
knows the mechanism and holds both truths equally likely; nobody does better [KOV15, Thm 3.1].
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

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
