"""What someone who sees the answers can find out: at most this, and as much as this."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import pytest

from tests.claims.databases import ONE, ratio
from tests.claims.test_promises import MECHANISMS, bounded, sent
from veilcount_shared.composition import (
    basic_composition,
    guessing_probability,
    optimal_composition,
)
from veilcount_shared.epsilon import exp_lower, exp_upper
from veilcount_shared.mechanisms import ProjectiveGeometry, SquareWave, SubsetSelection

DELTA = Fraction(1, 10**6)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_no_test_of_membership_beats_the_bound(
    mechanism: SubsetSelection | ProjectiveGeometry | SquareWave,
) -> None:
    """Membership inference: hits are at most e^eps times false alarms, whatever is taken as a sign.

    So the advantage, hits minus false alarms, is at most (e^eps - 1) / (e^eps + 1).
    """
    there, absent = sent(mechanism, 0), sent(mechanism, 1)
    e = exp_upper(mechanism.epsilon)
    for chosen in product((False, True), repeat=len(there)):
        signs = [x for x, each in zip(there, chosen, strict=True) if each]
        hits = sum((there[x] for x in signs), Fraction(0))
        alarms = sum((absent[x] for x in signs), Fraction(0))

        assert hits <= e * alarms
        assert hits - alarms <= (e - 1) / (e + 1)


def test_the_bound_is_reached() -> None:
    """Warner's response is true with probability e^eps / (1 + e^eps), 73 % at 1."""
    bit = SubsetSelection.for_epsilon(ONE, 2, 1)
    right = sent(bit, 1)[1]
    e = exp_lower(ONE)

    assert 0 <= e / (1 + e) - right < Fraction(1, 2**64)
    assert 0 <= guessing_probability(ONE, 1) - right <= Fraction(1, 10**9)


def majority(p: Fraction, answers: int) -> Fraction:
    """The chance that most of an odd number of answers are right."""
    return sum(
        (
            comb(answers, right) * p**right * (1 - p) ** (answers - right)
            for right in range(answers // 2 + 1, answers + 1)
        ),
        Fraction(0),
    )


def test_a_year_of_fresh_answers_hides_nothing() -> None:
    """The 365-day failure: "epsilon 1 a day" is 365 a year for what does not change.

    Optimal composition makes it 244.63 at delta = 1e-6; and whoever takes the majority is wrong
    less than once in ten billion times.
    """
    right = sent(SubsetSelection.for_epsilon(ONE, 2, 1), 1)[1]

    assert basic_composition([ONE] * 365) == 365
    assert round(float(optimal_composition(ONE, 365, DELTA)), 2) == 244.63
    assert 1 - majority(right, 365) < Fraction(1, 10**10)


def test_a_year_of_one_frozen_answer_hides_as_much_as_on_the_first_day() -> None:
    """Sent 365 times, it is one outcome: the two distributions have the ratio of one answer."""
    bit = SubsetSelection.for_epsilon(ONE, 2, 1)
    once = [sent(bit, x) for x in range(2)]
    always = [{(message,) * 365: p for message, p in each.items()} for each in once]

    assert bounded(ratio(always[0], always[1])) == bounded(ratio(once[0], once[1]))


@pytest.mark.parametrize("answers", [1, 3, 7, 31])
def test_the_curve_of_guesses_is_the_majority_s(answers: int) -> None:
    """Nobody guesses better from independent responses than by their majority."""
    right = sent(SubsetSelection.for_epsilon(ONE, 2, 1), 1)[1]

    assert 0 <= guessing_probability(ONE, answers) - majority(right, answers) <= Fraction(2, 10**9)
