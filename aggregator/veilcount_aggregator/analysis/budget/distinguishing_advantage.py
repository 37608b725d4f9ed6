"""The greatest probability of distinguishing which of two values a person gave.

Such a question compares data sets that differ in a value, so an add-remove epsilon counts twice.
A device randomizes each answer on its own, and its answers compose [KOV15, Thm 3.1]. A curator may
release many periods as one number, in which a person's answers add up: of those only the plain sum
holds (group privacy), which the bound for independent answers falls short of.
"""

from __future__ import annotations

from fractions import Fraction

from veilcount_shared import Collection
from veilcount_shared.collection import Model
from veilcount_shared.composition import MAX_ANSWERS, guessing_probability


def two_values_epsilon(collection: Collection, epsilon: Fraction) -> Fraction:
    """Return what one of the collection's epsilons amounts to between two values."""
    return epsilon * collection.substitution_factor


def distinguishing_probability(collection: Collection, answers: int = 1) -> Fraction:
    """Return an upper bound on guessing right which of two equally likely values was answered."""
    each = two_values_epsilon(collection, collection.unit_epsilon)
    if collection.model is Model.CENTRAL:
        return guessing_probability(each * answers, 1)
    return guessing_probability(each, answers) if answers <= MAX_ANSWERS else Fraction(1)
