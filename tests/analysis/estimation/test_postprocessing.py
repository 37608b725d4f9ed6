"""Compositions and lists: what each keeps, and what it leaves out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from veilcount_analysis.estimation.response_distribution import ResponseDistribution
from veilcount_analysis.estimation.results import base_cut, composition, denoised, norm_sub
from veilcount_shared.mechanisms import select_mechanism

numbers = st.floats(-1, 1, allow_subnormal=False)


@given(st.lists(numbers, min_size=1, max_size=30).map(np.array))
def test_a_composition_has_nothing_negative_and_is_one(shares: NDArray[np.float64]) -> None:
    for shown in (norm_sub(shares), composition(shares, 0.05)):
        assert shown.min() >= 0
        assert shown.sum() == pytest.approx(1)


@given(st.lists(numbers, min_size=2, max_size=8).map(np.array), st.integers(0, 1000))
def test_no_composition_is_nearer(shares: NDArray[np.float64], seed: int) -> None:
    other = np.random.default_rng(seed).dirichlet(np.ones(len(shares)))

    assert ((norm_sub(shares) - shares) ** 2).sum() <= ((other - shares) ** 2).sum() + 1e-12


def test_shares_of_many_errors_are_no_noise_and_far_below_zero_is_no_share() -> None:
    settled = np.array([0.5, 0.3, 0.2])

    assert denoised(np.array([0.7, 0.001, -0.002, 0.0005]), 0.001)[0] == 0.7
    assert denoised(np.array([-5.0, 0.5, 0.5]), 0.01)[0] == 0
    assert composition(settled, 0.001) == pytest.approx(settled)


def test_the_same_small_share_is_noise_among_many_and_none_among_few() -> None:
    """Three errors: one of 10,000 empty values has that by chance."""
    rng = np.random.default_rng(1)
    many = np.append(rng.normal(0, 0.01, 10_000), 0.03)
    few = np.array([0.9, 0.03])

    assert denoised(many, 0.01)[-1] < 0.015
    assert denoised(few, 0.01)[-1] > 0.025


def test_a_list_names_what_noise_alone_would_not_the_largest_first() -> None:
    response = ResponseDistribution.from_mechanism(select_mechanism(1000, 1).mechanism)
    error = np.sqrt(response.floor / 10_000) / response.gap
    shares = np.zeros(1000)
    shares[[5, 9, 7]] = np.array([4.5, 3.5, 9]) * error

    assert base_cut(shares, response, 10_000).tolist() == [7, 5]


def test_a_list_of_noise_is_empty_19_times_of_20() -> None:
    """400 lists of 1,000 values that nobody has; 0.05 +/- 4 errors."""
    response, rng, n = (
        ResponseDistribution.from_mechanism(select_mechanism(1000, 1).mechanism),
        np.random.default_rng(2),
        1_000_000,
    )
    named = 0
    for _ in range(400):
        supports = rng.binomial(n, response.Q, 1000)
        named += bool(len(base_cut(response.share(supports / n), response, n)))

    assert abs(named / 400 - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 400)
