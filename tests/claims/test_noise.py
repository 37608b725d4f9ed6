"""Noise that is exact: discrete Laplace, how large it is, what it allows."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import exp, factorial, sinh

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import chisquare

from tests.claims.databases import ONE, ZERO, image, ratio
from tests.enumeration import enumerate_distribution
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.epsilon import exp_lower, exp_upper
from veilcount_shared.randomness import RandomSource

ALPHA = 1e-6
DRAWS = 20_000
CUT = 12

# -- from fair bits --------------------------------------------------------------------------------


def laplace(q: Fraction, randomness: RandomSource, most: int | None = None) -> int:
    """Draw z with probability (1 - q) / (1 + q) q^|z|, from bits alone; |z| is at most `most`.

    Zero or not; the sign; then one step further for each success of probability q.
    """
    if randomness.bernoulli(q.denominator - q.numerator, q.denominator + q.numerator):
        return 0
    sign = 1 if randomness.bernoulli(1, 2) else -1
    size = 1
    while size != most and randomness.bernoulli(q.numerator, q.denominator):
        size += 1
    return sign * size


def chance(q: Fraction, z: int) -> Fraction:
    """The distribution that is claimed."""
    return (1 - q) / (1 + q) * q ** abs(z)


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(1, 3), Fraction(9, 10)])
def test_bernoulli_draws_make_the_discrete_laplace_distribution_exactly(q: Fraction) -> None:
    """Every outcome, enumerated as far as CUT: no float between a bit and its noise."""
    found = enumerate_distribution(lambda randomness: laplace(q, randomness, CUT))

    assert sum(found.values()) == 1
    assert all(found[z] == chance(q, z) for z in range(1 - CUT, CUT))


def exponential_bernoulli(rate: Fraction, randomness: RandomSource, most: int) -> bool | None:
    """Draw True with probability e^-rate, a rate in [0, 1] [CKS20, Alg. 1]; None if undecided.

    Draws of probability rate / 1, rate / 2, ... until one fails: True if that was an odd one.
    """
    for draw in range(1, most + 1):
        if not randomness.bernoulli(rate.numerator, rate.denominator * draw):
            return draw % 2 == 1
    return None


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2), ONE])
def test_rational_bernoulli_draws_make_one_of_an_irrational_probability(rate: Fraction) -> None:
    """e^-epsilon is enclosed between the branches that decided and those that may yet."""
    found = enumerate_distribution(lambda randomness: exponential_bernoulli(rate, randomness, CUT))
    undecided = found.get(None, ZERO)

    assert undecided == rate**CUT / factorial(CUT)
    assert found[True] <= 1 / exp_lower(rate)
    assert 1 / exp_upper(rate) <= found[True] + undecided


def fits(draws: Counter[int], q: Fraction) -> bool:
    """Whether a chi-square test at ALPHA accepts the draws, the two tails as a cell each."""
    inner = [float(chance(q, z)) for z in range(-6, 7)]
    tail = (1 - sum(inner)) / 2
    seen = [draws[z] for z in range(-6, 7)]
    below = sum(count for z, count in draws.items() if z < -6)
    expected = np.array([tail, *inner, tail]) * DRAWS
    return bool(chisquare([below, *seen, DRAWS - sum(seen) - below], expected).pvalue > ALPHA)


def test_drawn_noise_has_this_distribution_and_no_other() -> None:
    """Accepted; at 0.7 and 1.3 of its epsilon rejected."""
    q = Fraction(1, 2)
    randomness = SeededRandomSource(7)
    draws = Counter(laplace(q, randomness) for _ in range(DRAWS))

    assert fits(draws, q)
    assert not fits(draws, Fraction(0.5**0.7))
    assert not fits(draws, Fraction(0.5**1.3))


# -- what it promises, what it costs ---------------------------------------------------------------


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(9, 10)])
def test_it_moves_the_odds_of_a_count_by_one_step_of_epsilon(q: Fraction) -> None:
    """Two counts that differ by 1: every outcome's ratio is 1/q = e^eps, one way or the other."""
    ratios = {chance(q, z) / chance(q, z - 1) for z in range(-50, 50)}

    assert ratios == {q, 1 / q}


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 3.0])
def test_its_expected_size_is_one_over_the_hyperbolic_sine(epsilon: float) -> None:
    """E|z| = 1 / sinh(eps): nearly 1/eps where epsilon is small, never above."""
    q = exp(-epsilon)
    reach = int(60 / epsilon)
    expected = sum(2 * z * (1 - q) / (1 + q) * q**z for z in range(1, reach))

    assert abs(expected - 1 / sinh(epsilon)) < 1e-9
    assert expected < 1 / epsilon


def least_error(epsilon: float, counts: int) -> float:
    """The least worst expected |error| of any epsilon-DP mechanism for a count 0..counts-1.

    A linear program over all mechanisms: rows are distributions, neighbours within e^epsilon.
    """
    size = counts * counts
    bound, rows = exp(epsilon), []
    for x in range(counts - 1):
        for y in range(counts):
            for one, two in ((x, x + 1), (x + 1, x)):
                row = np.zeros(size + 1)
                row[one * counts + y], row[two * counts + y] = 1, -bound
                rows.append(row)
    sums = np.zeros((counts, size + 1))
    for x in range(counts):
        error = np.zeros(size + 1)
        error[x * counts : (x + 1) * counts] = np.abs(np.arange(counts) - x)
        error[-1] = -1
        rows.append(error)
        sums[x, x * counts : (x + 1) * counts] = 1
    goal = np.zeros(size + 1)
    goal[-1] = 1
    limits = np.zeros(len(rows))
    found = linprog(goal, A_ub=np.array(rows), b_ub=limits, A_eq=sums, b_eq=np.ones(counts))
    assert found.fun is not None
    return float(found.fun)


@pytest.mark.parametrize(("epsilon", "counts"), [(0.5, 9), (1.0, 7), (1.0, 11), (2.0, 7)])
def test_no_mechanism_at_all_is_below_the_order_of_one_over_epsilon(
    epsilon: float, counts: int
) -> None:
    """Two counts m apart: one of them is taken for the other with chance 1 / (1 + e^(m eps)).

    Being on the wrong side costs m/2, so with m near 1/eps the error is of that order; the program
    over all mechanisms finds none below, and the discrete Laplace distribution is within its reach.
    """
    best = least_error(epsilon, counts)
    floor = max(m / 2 / (1 + exp(m * epsilon)) for m in range(1, counts))

    assert floor <= best <= 1 / sinh(epsilon)
    assert floor >= 0.1 / epsilon


@pytest.mark.parametrize("truth", [0, 1, 4, 7])
def test_cutting_an_answer_to_what_is_possible_never_hurts(truth: int) -> None:
    """Truncation: a noisy count cut to 0..7 is never further from the truth, nor less private."""
    q = Fraction(1, 2)

    def cut(outcome: int) -> int:
        return min(max(outcome, 0), 7)

    raw, neighbour = (
        {at: chance(q, at - count) for at in range(-30, 40)} for count in (truth, truth + 1)
    )
    before, after = ratio(raw, neighbour), ratio(image(raw, cut), image(neighbour, cut))
    assert before is not None
    assert after is not None

    assert all(abs(cut(outcome) - truth) <= abs(outcome - truth) for outcome in raw)
    assert after <= before == 1 / q
