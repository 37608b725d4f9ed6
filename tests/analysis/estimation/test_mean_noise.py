"""Half-widths of the noise in the mean of few reports: bounds that hold, and are not wide."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from veilcount_analysis.estimation.confidence_intervals import anderson
from veilcount_analysis.estimation.mean_noise import chernoff, half_width, is_few
from veilcount_shared.mechanisms import MeanMechanism

from ...statistical.coverage_harness import mean_errors

EPSILONS = ("0.1", "1", "2.5", "4", "7", "12")
MANY = 10_000_000


def at(epsilon: str) -> MeanMechanism:
    return MeanMechanism.for_epsilon(Fraction(epsilon))


def normal(mechanism: MeanMechanism, n: int) -> float:
    return 1.959964 * float(np.sqrt(float(mechanism.variance) / 4 / n))


def first_many(mechanism: MeanMechanism, alpha: float) -> int:
    """The least n that is not few, by bisection."""
    low, high = 1, MANY
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if is_few(mechanism, middle, alpha) else (low, middle)
    return low


@pytest.mark.one_in(2)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_exact_interval_is_as_narrow_as_the_normal_where_that_takes_over(epsilon: str) -> None:
    """At the first n that is not few, at 0.95, the two differ by at most 6 %.

    Of fewer it is at most 1.7 times as wide; Chernoff's is up to 7 times as wide.
    """
    mechanism = at(epsilon)
    sizes = [1, 5, 60, first_many(mechanism, 0.05)]
    *few, last = (half_width(mechanism, n, 0.05) / normal(mechanism, n) for n in sizes)

    assert last == pytest.approx(1.01, abs=0.05)
    assert 0.4 < min(few) <= max(few) < 1.7


@pytest.mark.one_in(3)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("n", [1, 3, 30])
def test_a_half_width_grows_with_confidence_within_chernoff_s(epsilon: str, n: int) -> None:
    """Beyond 1e-6 it is Chernoff's; an error is never larger than that of a single report."""
    mechanism = at(epsilon)
    alphas = (0.5, 0.05, 1e-3, 1e-5, 1e-6, 1e-8, 1e-15)
    widths = [half_width(mechanism, n, alpha) for alpha in alphas]
    bounds = [chernoff(mechanism, n, alpha) for alpha in alphas]

    assert widths == sorted(widths)
    assert all(one <= 1.03 * two for one, two in zip(widths, bounds, strict=True))
    assert widths[-1] <= float(max(mechanism.decoded)) + 1e-9


@pytest.mark.one_in(3)
@pytest.mark.parametrize("epsilon", ["0.1", "3", "8"])
@pytest.mark.parametrize("alpha", [0.05, 1e-4, 1e-8])
def test_chernoff_s_bound_holds_for_every_cohort(epsilon: str, alpha: float) -> None:
    """By the exact distribution: all at an end, all within, and split between the ends."""
    mechanism, n = at(epsilon), 6
    bound = chernoff(mechanism, n, alpha) * (1 + 1e-9)
    for numbers, counts in (([0.0], [6]), ([0.37], [6]), ([0.0, 1.0], [3, 3]), ([0, 1.0], [5, 1])):
        errors, chances = mean_errors(mechanism, np.array(numbers), np.array(counts))

        assert chances[np.abs(errors) > bound].sum() <= alpha


def test_anderson_s_interval_moves_the_margin_from_one_end_to_the_other() -> None:
    """Of four equal reports at 1 of [0, 2]: with a margin of a half, a mean from 0.5 to 1.5."""
    low, high = anderson(np.array([0.0, 1.0, 2.0]), np.array([0, 4, 0]), 2 * np.exp(-2))

    assert (low[0], high[0]) == pytest.approx((0.5, 1.5))
