"""What the definition carries over to: groups, several answers, several people, and guesses."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Any

import pytest

from tests.enumeration import enumerate_distribution, max_likelihood_ratio
from veilcount_shared.composition import (
    basic_composition,
    group_privacy,
    guessing_probability,
    optimal_composition,
    parallel_composition,
)
from veilcount_shared.epsilon import exp_lower
from veilcount_shared.mechanisms import SquareWave, SubsetSelection

ZERO, HALF, ONE, TWO = Fraction(0), Fraction(1, 2), Fraction(1), Fraction(2)
BIT, SURER_BIT = (SubsetSelection.for_epsilon(epsilon, 2, 1) for epsilon in (ONE, TWO))
DELTA = Fraction(1, 10**6)
Distribution = dict[Any, Fraction]  # of outcomes of any kind


def sent(mechanism: SubsetSelection | SquareWave, x: int) -> Distribution:
    """The distribution of an input's message: the device's own code, over every outcome."""
    return dict(enumerate_distribution(lambda randomness: mechanism.randomize(x, randomness)))


def joint(*distributions: Distribution) -> Distribution:
    result: Distribution = {(): ONE}
    for distribution in distributions:
        result = {
            (*seen, outcome): chance * p
            for seen, chance in result.items()
            for outcome, p in distribution.items()
        }
    return result


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_group_of_k_is_promised_k_epsilon(k: int) -> None:
    """Group privacy: whatever k people answer together, the outcome's odds move by e^(k eps).

    And it is no less: all of them at once reach the product.
    """
    single = max_likelihood_ratio([sent(BIT, 0), sent(BIT, 1)])
    together = max_likelihood_ratio([joint(*[sent(BIT, x)] * k) for x in (0, 1)])

    assert together == single**k <= exp_lower(group_privacy(ONE, k))
    assert together > exp_lower(group_privacy(ONE, k) - Fraction(1, 1000))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (BIT, SubsetSelection.for_epsilon(ONE, 4, 1)),
        (SubsetSelection.for_epsilon(HALF, 4, 2), SquareWave.for_epsilon(ONE, 4, 2)),
    ],
)
def test_several_answers_of_one_person_add_up(
    one: SubsetSelection, two: SubsetSelection | SquareWave
) -> None:
    """Sequential composition: together they are as revealing as the sum, and no less."""
    ends = [(sent(each, 0), sent(each, each.inputs - 1)) for each in (one, two)]
    apart = [max_likelihood_ratio(each) for each in ends]
    together = max_likelihood_ratio([joint(*each) for each in zip(*ends, strict=True)])

    assert together == apart[0] * apart[1]
    assert together <= exp_lower(basic_composition([one.epsilon, two.epsilon]))


def test_answers_of_several_people_do_not() -> None:
    """Parallel composition: who answers one of two questions only changes one of two outcomes."""
    first, second = ([sent(each, x) for x in (0, 1)] for each in (BIT, SURER_BIT))
    only_first = max_likelihood_ratio([joint(each, second[1]) for each in first])
    only_second = max_likelihood_ratio([joint(first[0], each) for each in second])

    assert max(only_first, only_second) <= exp_lower(parallel_composition([ONE, TWO]))
    assert only_first * only_second > exp_lower(parallel_composition([ONE, TWO]))


def majority(p: Fraction, answers: int) -> Fraction:
    """The chance that most of an odd number of answers are right."""
    most = range(answers // 2 + 1, answers + 1)
    return sum((comb(answers, k) * p**k * (1 - p) ** (answers - k) for k in most), ZERO)


@pytest.mark.parametrize("answers", [1, 3, 31])
def test_the_curve_of_guesses_is_the_majority_s(answers: int) -> None:
    """Nobody guesses better from independent responses; of one, e^eps / (1 + e^eps) are right."""
    right = sent(BIT, 1)[1]
    e = exp_lower(ONE)

    assert 0 <= e / (1 + e) - right < Fraction(1, 2**64)
    assert 0 <= guessing_probability(ONE, answers) - majority(right, answers) <= Fraction(2, 10**9)


def test_a_year_of_fresh_answers_hides_nothing() -> None:
    """The 365-day failure: "epsilon 1 a day" is 365 a year for what does not change.

    Optimal composition makes it 244.63 at delta = 1e-6; and whoever takes the majority is wrong
    less than once in ten billion times.
    """
    assert basic_composition([ONE] * 365) == 365
    assert round(float(optimal_composition(ONE, 365, DELTA)), 2) == 244.63
    assert 1 - majority(sent(BIT, 1)[1], 365) < Fraction(1, 10**10)
