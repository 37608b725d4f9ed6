"""What several answers reveal together is never understated."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from veilcount_shared.composition import (
    MAX_ANSWERS,
    guessing_probability,
    optimal_composition,
    shuffle_amplification,
)
from veilcount_shared.errors import EpsilonError

HALF, ONE, TWO = Fraction(1, 2), Fraction(1), Fraction(2)
DELTA = Fraction(1, 10**6)
GRAIN = Fraction(1, 10**9)


def power_of_e(exponent: Fraction) -> Fraction:
    """e^exponent to 60 digits, by decimals: not the code under test."""
    with localcontext(Context(prec=60)):
        return Fraction((Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())


def delta_of(result: Fraction, epsilon: Fraction, answers: int) -> Fraction:
    """The delta of `answers` randomized bits at a claimed epsilon, over every string they can send.

    The worst mechanism reports the true bit with probability e / (1 + e) [KOV15, Thm 3.1]; the two
    inputs are all zeros and all ones. The definition of (epsilon, delta), outcome by outcome.
    """
    e, bound = power_of_e(epsilon), power_of_e(result)
    truth, lie = e / (1 + e), 1 / (1 + e)
    total = Fraction(0)
    for bits in product((0, 1), repeat=answers):
        zeros = prod(lie if bit else truth for bit in bits)
        ones = prod(truth if bit else lie for bit in bits)
        total += max(Fraction(0), zeros - bound * ones)
    return total


# -- optimal composition ---------------------------------------------------------------------------


@pytest.mark.parametrize("answers", [1, 2, 7, 365, MAX_ANSWERS])
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), HALF, TWO])
def test_the_best_guess_is_the_majority_of_randomized_bits(epsilon: Fraction, answers: int) -> None:
    """Up to the most answers there may be; a tie of even numbers is guessed."""
    truth = float(power_of_e(epsilon) / (1 + power_of_e(epsilon)))
    tie = binom.pmf(answers / 2, answers, truth) / 2 if answers % 2 == 0 else 0.0
    majority = float(binom.sf(answers // 2, answers, truth) + tie)
    bound = float(guessing_probability(epsilon, answers))

    assert bound == pytest.approx(majority, abs=2e-9)
    assert abs(float(guessing_probability(epsilon * 11 / 10, answers)) - majority) > 2e-9 or (
        majority > 1 - 1e-8
    )


@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 1000), Fraction(1, 10**9)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(3)])
@pytest.mark.parametrize("answers", [1, 2, 5, 8])
def test_optimal_composition_is_the_least_that_holds(
    answers: int, epsilon: Fraction, delta: Fraction
) -> None:
    """The exact delta at the result is at most the requested one; two grains below it is more.

    So the check would see a result that is rounded down.
    """
    result = optimal_composition(epsilon, answers, delta)
    exact_at = delta_of(result, epsilon, answers)

    assert exact_at <= delta
    assert result <= epsilon * answers
    if result > 2 * GRAIN:
        assert delta_of(result - 2 * GRAIN, epsilon, answers) > delta


@given(
    st.fractions(Fraction(1, 10), 3, max_denominator=10),
    st.integers(1, 40),
    st.integers(1, 12).map(lambda power: Fraction(1, 10**power)),
)
def test_optimal_composition_is_monotone(epsilon: Fraction, answers: int, delta: Fraction) -> None:
    result = optimal_composition(epsilon, answers, delta)

    assert 0 <= result <= epsilon * answers
    assert result <= optimal_composition(epsilon, answers + 1, delta)
    assert result <= optimal_composition(epsilon + Fraction(1, 10), answers, delta)
    assert result <= optimal_composition(epsilon, answers, delta / 10)


@pytest.mark.parametrize("answers", [0, -1, MAX_ANSWERS + 1])
def test_a_number_of_answers_out_of_range_is_refused(answers: int) -> None:
    with pytest.raises(ValueError, match=r"give 1 to 10,000"):
        optimal_composition(ONE, answers, DELTA)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(-1, 2), Fraction(1), Fraction(1, 10**31)])
def test_an_epsilon_or_a_delta_out_of_range_is_refused(delta: Fraction) -> None:
    for bound in (optimal_composition, shuffle_amplification):
        with pytest.raises(ValueError, match=r"give at least 1e-30 and less than 1"):
            bound(ONE, 2, delta)
        with pytest.raises(EpsilonError, match=r"give a number above 0"):
            bound(-abs(delta), 2, DELTA)


# -- amplification by shuffling --------------------------------------------------------------------


def closed_form(epsilon: Fraction, reports: int, delta: Fraction) -> Fraction:
    """FMT21, Thm 3.1, written down a second time, to 60 digits."""
    with localcontext(Context(prec=60)):
        e = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        tail = (4 * Decimal(delta.denominator) / Decimal(delta.numerator)).ln()
        spread = 8 * (e * tail / reports).sqrt() + 8 * e / reports
        return Fraction((1 + (e - 1) / (e + 1) * spread).ln())


@pytest.mark.parametrize("reports", [1000, 12_345, 10**6, 10**9])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction("1.3")])
def test_the_shuffled_figure_is_rounded_up(epsilon: Fraction, reports: int) -> None:
    lost = shuffle_amplification(epsilon, reports, DELTA) - min(
        closed_form(epsilon, reports, DELTA), epsilon
    )

    assert 0 <= lost < 2 * GRAIN


def test_the_theorem_applies_from_its_own_limit_on() -> None:
    """epsilon <= ln(n / (16 ln(2/delta))): one report fewer, and there is no credit."""
    with localcontext(Context(prec=60)):
        least = int(Decimal(3).exp() * 16 * (2 * Decimal(10**6)).ln()) + 1

    assert shuffle_amplification(Fraction(3), least - 1, DELTA) == 3
    assert shuffle_amplification(Fraction(3), least, DELTA) < 3


def test_the_local_epsilon_is_returned_where_the_theorem_gains_nothing() -> None:
    """Just beyond its limit the bound of a small epsilon is above that epsilon."""
    small = Fraction(1, 100)

    assert closed_form(small, 240, DELTA) > small
    assert shuffle_amplification(small, 240, DELTA) == small


@given(st.fractions(Fraction(1, 100), 16), st.integers(0, 10**9))
def test_shuffling_never_raises_epsilon(epsilon: Fraction, reports: int) -> None:
    result = shuffle_amplification(epsilon, reports, DELTA)

    assert 0 < result <= epsilon
    assert shuffle_amplification(epsilon, reports + 1000, DELTA) <= result
