"""Composition: what several answers reveal, of one person and of several."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import comb, expm1, log, sqrt
from typing import Any

from veilcount_analysis.privacy.budget.composition import compose_answers, guessing_chance
from veilcount_shared.composition import (
    basic_composition,
    guessing_probability,
    optimal_composition,
    parallel_composition,
)
from veilcount_shared.epsilon import exp_lower
from veilcount_shared.mechanisms import SquareWave, SubsetSelection

from ..enumeration import max_likelihood_ratio
from .claim_harness import claim
from .test_definitions import joint, sent

ZERO, HALF, ONE, TWO = Fraction(0), Fraction(1, 2), Fraction(1), Fraction(2)
BIT, SURER_BIT = (SubsetSelection.for_epsilon(epsilon, 2, 1) for epsilon in (ONE, TWO))
DELTA = Fraction(1, 10**6)
PAIRS = (
    (BIT, SubsetSelection.for_epsilon(ONE, 4, 1)),
    (SubsetSelection.for_epsilon(HALF, 4, 2), SquareWave.for_epsilon(ONE, 4, 2)),
)
SHARED = "shared/veilcount_shared/composition.py"
BUDGET = "aggregator/analysis/veilcount_analysis/privacy/budget/composition.py"

Composition = Callable[[list[Fraction]], Fraction]


@claim(SHARED, basic_composition, parallel_composition)
def test_several_answers_of_one_person_add_up(stated: Composition, *, holds: bool) -> None:
    """Answers of one person together keep the sum of their epsilons, and independent ones reach
    it [Dwork & Roth 2014, theorem 3.14]."""
    for one, two in PAIRS:
        ends = [(sent(each, 0), sent(each, each.inputs - 1)) for each in (one, two)]
        together = max_likelihood_ratio([joint(*each) for each in zip(*ends, strict=True)])
        bound = stated([one.epsilon, two.epsilon])

        assert (together <= exp_lower(bound)) == holds
        assert together > exp_lower(bound - Fraction(1, 1000))


@claim(SHARED, parallel_composition, min)
def test_answers_of_several_people_do_not_add_up(stated: Composition, *, holds: bool) -> None:
    """Of collections that no person is in two of, the largest epsilon holds for everyone
    [McSherry 2009, theorem 4].

    Planted: the smallest one.
    """
    first, second = ([sent(each, x) for x in (0, 1)] for each in (BIT, SURER_BIT))
    only_first = max_likelihood_ratio([joint(each, second[1]) for each in first])
    only_second = max_likelihood_ratio([joint(first[0], each) for each in second])

    assert (max(only_first, only_second) <= exp_lower(stated([ONE, TWO]))) == holds


def exact_delta(answers: int, epsilon: Fraction) -> Fraction:
    """Return the delta of independent randomized responses, over all sequences of messages."""
    one, two = (joint(*[sent(BIT, x)] * answers) for x in (0, 1))
    return sum((max(one[m] - exp_lower(epsilon) * two[m], ZERO) for m in one), ZERO)


@claim(SHARED, ZERO, Fraction(1, 1000), Fraction(-1, 1000))
def test_the_optimal_composition_is_exact(stated: Fraction, *, holds: bool) -> None:
    """The optimal epsilon of T answers at a delta is the one that T randomized responses reach
    [Kairouz, Oh & Viswanath 2015, theorem 3.3].

    Their delta, enumerated: within it at that epsilon, and beyond it a millionth below. Planted:
    an epsilon that is a thousandth off, either way.
    """
    hair = Fraction(1, 10**6)
    found = []
    for answers, delta in ((2, Fraction(1, 10)), (4, Fraction(1, 10)), (7, Fraction(1, 1000))):
        at = optimal_composition(ONE, answers, delta) + stated
        found.append(exact_delta(answers, at) <= delta < exact_delta(answers, at - hair))

    assert all(found) == holds
    assert any(found) == holds


def advanced(epsilon: Fraction, answers: int, delta: Fraction) -> float:
    """Return the bound of the advanced composition theorem for pure mechanisms."""
    eps = float(epsilon)
    return eps * sqrt(2 * answers * log(1 / delta)) + answers * eps * expm1(eps)


@claim(BUDGET, advanced, lambda epsilon, answers, _: float(epsilon) * sqrt(answers))
def test_the_bounds_of_composition_are_ordered(
    stated: Callable[[Fraction, int, Fraction], float], *, holds: bool
) -> None:
    """The mechanism's own bound is at most the optimal one, which is at most the basic and the
    advanced one: sqrt(2 T ln(1 / delta)) eps + T eps (e^eps - 1) [Dwork & Roth 2014,
    theorem 3.20].

    Planted: sqrt(T) eps, the root without its logarithm.
    """
    found = []
    for epsilon, answers in ((Fraction(1, 10), 100), (HALF, 30), (ONE, 7)):
        composed = compose_answers(SubsetSelection.for_epsilon(epsilon, 10, 1), answers, DELTA)
        assert composed.optimal is not None
        assert composed.specific is not None
        assert composed.specific <= composed.optimal <= composed.plain
        found.append(composed.optimal <= stated(epsilon, answers, DELTA))

    assert all(found) == holds


@claim(SHARED, Fraction(1, 10), ONE)
def test_advanced_composition_gains_for_small_epsilons_only(
    stated: Fraction, *, holds: bool
) -> None:
    """Over a year the advanced bound is below the plain sum at small epsilons, and above it at
    epsilon 1, where the sum of 365 stays meaningless at delta = 1e-6 too: 244.63 [Dwork & Roth
    2014]."""
    assert round(float(optimal_composition(ONE, 365, DELTA)), 2) == 244.63
    assert (advanced(stated, 365, DELTA) < basic_composition([stated] * 365)) == holds


def majority(p: Fraction, answers: int) -> Fraction:
    """Return the probability that most of an odd number of answers are right."""
    most = range(answers // 2 + 1, answers + 1)
    return sum((comb(answers, k) * p**k * (1 - p) ** (answers - k) for k in most), ZERO)


@claim(SHARED, guessing_probability, lambda epsilon, _: guessing_probability(epsilon, 1))
def test_the_best_guess_from_independent_answers_is_the_majority(
    stated: Callable[[Fraction, int], Fraction], *, holds: bool
) -> None:
    """The averaging attack: randomized response that is drawn afresh is undone by a majority,
    which after a year at epsilon 1 a day is wrong less than once in ten billion times [Erlingsson,
    Pihur & Korolova 2014].

    No guess is better than the majority. Planted: a bound that repetition does not move.
    """
    right = sent(BIT, 1)[1]
    found = [
        0 <= stated(ONE, answers) - majority(right, answers) <= Fraction(2, 10**9)
        for answers in (3, 31, 365)
    ]

    assert all(found) == holds
    assert 1 - majority(right, 365) < Fraction(1, 10**10)


def replayed(x: int, answers: int) -> dict[Any, Fraction]:
    return {(message,) * answers: p for message, p in sent(BIT, x).items()}


def redrawn(x: int, answers: int) -> dict[Any, Fraction]:
    return joint(*[sent(BIT, x)] * answers)


@claim(BUDGET, replayed, redrawn)
def test_a_persistent_answer_is_not_undone(
    stated: Callable[[int, int], dict[Any, Fraction]], *, holds: bool
) -> None:
    """A frozen answer that is sent again and again reveals what it revealed the first time
    [Erlingsson, Pihur & Korolova 2014].

    The best guess, exactly, from all that was sent, against the product's figure for frozen
    answers. Planted: the same answers, drawn afresh.
    """
    for answers in (3, 7):
        one, two = (stated(x, answers) for x in (0, 1))
        guess = (1 + sum((max(one[m] - two[m], ZERO) for m in one), ZERO)) / 2
        chance = guessing_chance(BIT, answers)

        assert (guess <= chance.frozen) == holds
        assert guess <= chance.fresh


@claim(BUDGET, 1, 2)
def test_the_guess_grows_with_each_answer_until_the_cap(stated: int, *, holds: bool) -> None:
    """What is guessed from independent answers grows with every second one, so a bound on what is
    revealed in the end needs a cap on their number [Dwork & Roth 2014].

    Of an even number of answers the last only breaks ties: planted is a gain from each.
    """
    chances = [guessing_chance(BIT, answers).fresh for answers in range(1, 12, 3 - stated)]
    odd = all(one < two for one, two in pairwise(chances))

    assert odd == holds
