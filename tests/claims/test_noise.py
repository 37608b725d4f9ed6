"""Noise: discrete Laplace, Gaussian, and choosing instead of adding."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import exp, inf, log, nextafter, sqrt
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from veilcount_analysis.releases import DiscreteLaplaceNoise
from veilcount_analysis.releases.opendp_noise import (
    calibrated_gaussian_scale,
    calibrated_scale,
    load_opendp,
)
from veilcount_analysis.releases.zcdp import rho_budget
from veilcount_shared.mechanisms import SubsetSelection

from ..aggregator.exact_rows import rows_of
from .claim_harness import COMPARISON, claim

LAPLACE = "aggregator/analysis/veilcount_analysis/releases/discrete_laplace.py"
ZCDP = "aggregator/analysis/veilcount_analysis/releases/zcdp.py"
OPENDP = "aggregator/analysis/veilcount_analysis/releases/opendp_noise.py"
SUBSET = "shared/veilcount_shared/mechanisms/subset_selection.py"
ONE = Fraction(1)
PHI = NormalDist().cdf


def laplace_mass(scale: float, reach: int) -> NDArray[np.float64]:
    """Return the probabilities from -reach to reach, normalized by their own sum."""
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    mass: NDArray[np.float64] = weights / weights.sum()
    return mass


@claim(OPENDP, calibrated_scale, lambda moved, epsilon: float(moved / epsilon))
def test_a_scale_in_floats_is_rounded_up(
    stated: Callable[[int, Fraction], float], *, holds: bool
) -> None:
    """Laplace noise of scale sensitivity / epsilon keeps epsilon, if the quotient is rounded
    upward where it is no float [Casacuberta, Shoemate, Vadhan & Wagaman 2022].

    OpenDP's own account of what a scale delivers, exact as a fraction of the float it returns.
    """
    dp = load_opendp()
    dp.enable_features("contrib")
    numbers = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    requests = [(moved, Fraction(part, 10)) for moved in (1, 2, 3) for part in range(1, 20)]
    delivered = [
        Fraction(dp.m.make_laplace(*numbers, scale=stated(*request)).map(request[0])) <= request[1]
        for request in requests
    ]

    assert all(delivered) == holds


@claim(LAPLACE, 1.0, 0.99)
def test_discrete_laplace_keeps_epsilon(stated: float, *, holds: bool) -> None:
    """Discrete Laplace noise of scale d / epsilon changes no outcome's probability by more than
    e^epsilon where the truth moves by d [Ghosh, Roughgarden & Sundararajan 2009].

    At the scales that releases use; the product's half-widths and deviation are those of this
    distribution. Planted: a scale that is a hundredth too small.
    """
    for moved, epsilon in ((1, ONE), (2, ONE / 2), (5, ONE * 3)):
        noise = DiscreteLaplaceNoise(stated * calibrated_scale(moved, epsilon))
        reach = int(40 * noise.scale)
        mass = laplace_mass(noise.scale, reach)
        width = noise.half_width(0.05)
        inside = mass[reach - width : reach + width + 1].sum()
        loss = np.abs(np.log(mass[moved:] / mass[:-moved])).max()

        assert 1 - inside <= 0.05 < 1 - inside + 2 * mass[reach + width]
        assert noise.deviation**2 == pytest.approx(mass @ np.arange(-reach, reach + 1) ** 2)
        assert (loss <= float(epsilon) + 1e-9) == holds


@claim(LAPLACE, 0, 1)
def test_an_interval_of_laplace_noise_is_the_narrowest_that_covers(
    stated: int, *, holds: bool
) -> None:
    """Noise leaves its half-width with probability alpha at most, and a width less by 1 would not
    cover, for the tail 2 q^(w + 1) / (1 + q) is exact [Canonne, Kamath & Steinke 2020]."""
    covers = [
        2 * q ** (noise.half_width(alpha) - stated + 1) / (1 + q) <= alpha
        for scale in (0.5, 2.0, 30.0)
        for alpha in (0.1, 0.05, 1e-4)
        for noise, q in [(DiscreteLaplaceNoise(scale), exp(-1 / scale))]
        if noise.half_width(alpha) > 0
    ]

    assert all(covers) == holds


@claim(LAPLACE, lambda scale, t: scale * t, lambda scale, t: scale * t / 2)
def test_the_continuous_tail_bounds_the_discrete_one(
    stated: Callable[[float, float], float], *, holds: bool
) -> None:
    """Noise exceeds t scales with probability e^-t at most, wherever t scales are an integer
    [Dwork & Roth 2014, fact 3.7]."""
    found = [
        DiscreteLaplaceNoise(scale).half_width(exp(-t)) <= stated(scale, t)
        for scale in (1.0, 5.0, 20.0)
        for t in (1.0, 3.0, 10.0)
    ]

    assert all(found) == holds


@claim(LAPLACE, 2.0, 1.0)
def test_the_variance_approaches_two_squared_scales(stated: float, *, holds: bool) -> None:
    """The variance of discrete Laplace noise is below 2 scale^2 and approaches it
    [Canonne, Kamath & Steinke 2020]."""
    ratios = [DiscreteLaplaceNoise(scale).deviation ** 2 / scale**2 for scale in (1.0, 10.0, 100.0)]
    mass = laplace_mass(10.0, 600)
    enumerated = float(mass @ np.arange(-600, 601) ** 2) / 100

    assert ratios == sorted(ratios)
    assert ratios[1] == pytest.approx(enumerated)
    assert (0 < stated - ratios[-1] < 1e-3) == holds


def least_error(epsilon: float, n: int) -> float:
    """Return the least mean error of a count of 0 to n, where it is largest, that keeps epsilon.

    Over all mechanisms, by linear programming: a chance for each count and outcome, and the error.
    A whole number within 0..n loses nothing against another outcome, since errors are convex.
    """
    size = n + 1
    chances = np.arange(size**2).reshape(size, size)
    totals = np.zeros((size, size**2 + 1))
    errors = np.full((size, size**2 + 1), -1.0) * (np.arange(size**2 + 1) == size**2)
    for count in range(size):
        totals[count, chances[count]] = 1
        errors[count, chances[count]] = abs(np.arange(size) - count)
    private = []
    for one, other in ((chances[:-1], chances[1:]), (chances[1:], chances[:-1])):
        rows = np.zeros((n * size, size**2 + 1))
        rows[np.arange(n * size), one.ravel()] = 1
        rows[np.arange(n * size), other.ravel()] = -exp(epsilon)
        private.append(rows)
    bounds = np.vstack([*private, errors])
    goal = np.arange(size**2 + 1) == size**2
    solution = linprog(goal, bounds, np.zeros(len(bounds)), totals, np.ones(size))
    assert solution.fun is not None
    return float(solution.fun)


@claim(LAPLACE, lambda d, e: d / (exp(d * e) + 1), lambda d, e: d / (exp(d * e) - 1))
def test_no_count_is_more_accurate_than_epsilon_allows(
    stated: Callable[[int, float], float], *, holds: bool
) -> None:
    """Whatever keeps epsilon misses some count of 0 to n by d / (e^(d epsilon) + 1) on average, for
    every d up to n: so by some 0.28 / epsilon where n is larger [Hardt & Talwar 2010].

    The best of all mechanisms, which the product's noise is no better than.
    """
    found = []
    for epsilon, n in ((0.02, 10), (0.1, 10), (0.5, 10), (1.0, 6)):
        least = least_error(epsilon, n)
        assert least <= DiscreteLaplaceNoise(1 / epsilon).deviation
        found.append(max(stated(d, epsilon) for d in range(1, n + 1)) <= least + 1e-7)

    assert all(found) == holds


@claim(LAPLACE, 1, 4)
def test_a_count_within_a_quarter_of_n_needs_epsilon_of_one_in_n(
    stated: int, *, holds: bool
) -> None:
    """To know a count of n people within n / 4 on average takes more than epsilon = 1 / n: of few
    people there is no accurate figure at a small epsilon [Hardt & Talwar 2010].

    Planted: more than 4 / n.
    """
    found = [least_error(stated / n, n) > n / 4 for n in (4, 8, 12)]

    assert all(found) == holds


def gaussian_delta(sigma: float, epsilon: float) -> float:
    """Return the exact delta of Gaussian noise at sensitivity 1 [Balle & Wang 2018, theorem 8]."""
    middle, tilt = 1 / (2 * sigma), epsilon * sigma
    return PHI(middle - tilt) - exp(epsilon) * PHI(-middle - tilt)


def integrated_delta(sigma: float, epsilon: float) -> float:
    """Return the same by integrating the excess of one density over e^epsilon times the other."""
    x = np.linspace(-12 * sigma, 12 * sigma + 1, 400_001)
    one, two = (np.exp(-(((x - at) / sigma) ** 2) / 2) for at in (1, 0))
    excess = np.maximum(one - exp(epsilon) * two, 0).sum() * (x[1] - x[0])
    return float(excess / (sigma * sqrt(2 * np.pi)))


@claim(COMPARISON, gaussian_delta, lambda sigma, eps: 1.25 * exp(-((eps * sigma) ** 2) / 2))
def test_the_delta_of_gaussian_noise(
    stated: Callable[[float, float], float], *, holds: bool
) -> None:
    """Gaussian noise has delta = Phi(1 / 2s - eps s) - e^eps Phi(-1 / 2s - eps s) at sensitivity 1
    [Balle & Wang 2018, theorem 8].

    Against the integral of the definition. Planted: the classical bound taken for the value.
    """
    found = [
        abs(stated(sigma, epsilon) - integrated_delta(sigma, epsilon)) < 1e-7
        for sigma in (1.0, 3.0)
        for epsilon in (0.25, 1.0)
    ]

    assert all(found) == holds


@claim(COMPARISON, 1.25, 0.05)
def test_the_classical_gaussian_bound_is_valid_and_loose(stated: float, *, holds: bool) -> None:
    """At epsilon below 1 the classical sigma = sqrt(2 ln(1.25 / delta)) / epsilon keeps (epsilon,
    delta), with a delta to spare [Dwork & Roth 2014, theorem 3.22]."""
    found = [
        integrated_delta(sqrt(2 * log(stated / delta)) / epsilon, epsilon) < delta
        for epsilon in (0.25, 0.5, 0.9)
        for delta in (1e-2, 1e-3, 1e-5)
    ]

    assert all(found) == holds


@claim(COMPARISON, 0.9, 10.0)
def test_the_classical_gaussian_bound_ends_at_one(stated: float, *, holds: bool) -> None:
    """The classical bound is stated for epsilon below 1 and is wrong for large ones
    [Balle & Wang 2018]."""
    sigma = sqrt(2 * log(1.25 / 1e-5)) / stated

    assert (gaussian_delta(sigma, stated) <= 1e-5) == holds


@claim(ZCDP, 1, 4)
def test_a_rho_keeps_the_epsilon_and_delta_it_is_converted_from(
    stated: int, *, holds: bool
) -> None:
    """Discrete Gaussian noise of the rho that an (epsilon, delta) is converted to keeps both
    [Canonne, Kamath & Steinke 2020].

    Its exact delta, summed over the integers. Planted: four times the rho.
    """
    for epsilon in (ONE / 2, ONE, ONE * 3):
        for delta in (Fraction(1, 100), Fraction(1, 10**5)):
            scale = calibrated_gaussian_scale(1, stated * rho_budget(epsilon, delta))
            x = np.arange(-int(40 * scale) - 2, int(40 * scale) + 3)
            mass = np.exp(-((x / scale) ** 2) / 2)
            mass /= mass.sum()
            exact = np.maximum(mass[1:] - exp(epsilon) * mass[:-1], 0).sum()

            assert (exact <= delta) == holds


@claim(SUBSET, 1, 2)
def test_randomized_response_is_an_exponential_mechanism(stated: int, *, holds: bool) -> None:
    """Randomized response is the exponential mechanism of the score "is it the value", and spends
    epsilon rather than epsilon / 2 on the score, since its normalization is the same for every
    value [McSherry & Talwar 2007, theorem 6].

    From the device's own rows. Planted: the general calibration, half the exponent.
    """
    rows = rows_of(SubsetSelection.for_epsilon(ONE, 5, 1))
    weights = np.exp(np.eye(5) / stated)
    expected = weights / weights.sum(axis=1, keepdims=True)

    assert bool(np.allclose(np.array(rows, float), expected, atol=1e-12)) == holds


@claim(SUBSET, log, lambda _: 0.0)
def test_the_utility_of_the_exponential_mechanism(
    stated: Callable[[int], float], *, holds: bool
) -> None:
    """A score falls short of the best one by (ln k + t) / epsilon with probability e^-t at most;
    without the ln k this is wrong [Dwork & Roth 2014, theorem 3.11].

    A randomized response is wrong, hence short by 1, where epsilon = ln k + t.
    """
    found = [
        float(1 - SubsetSelection.for_epsilon(epsilon, k, 1).P)
        <= exp(-(float(epsilon) - stated(k))) * nextafter(1, inf)
        for k in (3, 10, 100)
        for epsilon in (Fraction(1), Fraction(3), Fraction(6))
    ]

    assert all(found) == holds
