"""The local model: variance, optimal mechanisms, and what it costs against a trusted curator."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import comb, exp, isclose, log

import pytest

from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.releases import DiscreteLaplaceNoise
from veilcount_shared import select_mechanism
from veilcount_shared.domain import GRID
from veilcount_shared.epsilon import exp_lower
from veilcount_shared.mechanisms import MeanMechanism, ProjectiveGeometry, SubsetSelection
from veilcount_shared.mechanisms.selection import best_subset, subset_variance

from ..aggregator.exact_rows import rows_of
from .claim_harness import claim
from .test_definitions import sent

SUBSET = "aggregator/analysis/veilcount_analysis/mechanisms/subset_selection.py"
SELECTION = "shared/veilcount_shared/mechanisms/selection.py"
TRUST = "aggregator/analysis/veilcount_analysis/privacy/trust_models/quantity.py"
MECHANISMS = "shared/veilcount_shared/mechanisms/interface.py"
MEAN = "shared/veilcount_shared/mechanisms/mean.py"
EPSILONS = tuple(map(Fraction, ("0.1", "0.5", "1", "2", "4")))
Variance = Callable[[float], float]


@claim(SUBSET, lambda e: e / (e - 1) ** 2, lambda e: 1 / log(e) ** 2, lambda e: 1 / (e - 1) ** 2)
def test_the_variance_of_randomized_response(stated: Variance, *, holds: bool) -> None:
    """The share that n randomized bits estimate has the variance e^eps / (n (e^eps - 1)^2), and no
    bias [Warner 1965].

    Enumerated over the counts of five reports of the same value, as the product's P and Q debias
    them, and against the product's own noise variance.
    """
    found = []
    for epsilon in EPSILONS:
        bit, n = SubsetSelection.for_epsilon(epsilon, 2, 1), 5
        right = sent(bit, 1)[1]
        chances = [comb(n, c) * right**c * (1 - right) ** (n - c) for c in range(n + 1)]
        shares = [(Fraction(c, n) - bit.Q) / (bit.P - bit.Q) for c in range(n + 1)]
        assert sum(p * share for p, share in zip(chances, shares, strict=True)) == 1
        variance = n * sum(p * (s - 1) ** 2 for p, s in zip(chances, shares, strict=True))
        assert float(variance) == pytest.approx(handler_of(bit).noise_variance())
        found.append(isclose(variance, stated(exp(epsilon)), rel_tol=1e-9))

    assert all(found) == holds


@claim(SELECTION, best_subset, lambda _, __: 1, lambda k, _: k // 2)
def test_the_best_subset_has_k_over_e_plus_one_members(
    stated: Callable[[int, Fraction], int], *, holds: bool
) -> None:
    """Of all sizes of subsets, the one next to k / (e^epsilon + 1) has the least variance
    [Ye & Barg 2018, section 4].

    Against every size. Planted: randomized response, and half of the values, for every k.
    """
    found = [
        stated(k, e) == min(range(1, k), key=lambda w: subset_variance(k, w, e))
        for k in (2, 4, 10, 64)
        for e in map(exp_lower, EPSILONS)
    ]

    assert all(found) == holds


def unary_variance(k: int, e: Fraction) -> Fraction:
    """Return n times the variance of optimized unary encoding at the uniform distribution."""
    p, q = Fraction(1, 2), 1 / (e + 1)
    hit = q + (p - q) / k
    return hit * (1 - hit) / (p - q) ** 2


def of_selection(k: int, epsilon: Fraction) -> float:
    """Return n times the variance of the product's choice at the uniform distribution."""
    mechanism = select_mechanism(k, epsilon).mechanism
    hit = mechanism.Q + (mechanism.P - mechanism.Q) / k
    return float(hit * (1 - hit) / (mechanism.P - mechanism.Q) ** 2)


def of_response(k: int, epsilon: Fraction) -> float:
    return float(subset_variance(k, 1, exp_lower(epsilon)))


def of_unary(k: int, epsilon: Fraction) -> float:
    return float(unary_variance(k, exp_lower(epsilon)))


@claim(
    SELECTION,
    (of_selection, 100_000),
    (of_response, 100_000),
    (of_unary, 100_000),
    (of_selection, 1 << 20),
)
def test_the_chosen_mechanism_is_within_a_few_percent_of_the_optimum(
    stated: tuple[Callable[[int, Fraction], float], int], *, holds: bool
) -> None:
    """Up to 100,000 values the chosen mechanism has at most 1.035 times the least mean square error
    that any local mechanism has with many reports [Ye & Barg 2017].

    The optimum is that of the best subset. Planted: randomized response, and optimized unary
    encoding, at every k; the product's choice for a million values.
    """
    variance, most = stated
    ratios = [
        variance(k, epsilon)
        / float(subset_variance(k, best_subset(k, exp_lower(epsilon)), exp_lower(epsilon)))
        for k in (2, 4, 16, 64, 1000, 65536, most)
        for epsilon in (*EPSILONS, Fraction(6), Fraction("7.9"))
    ]

    assert min(ratios) > 1 - 1e-9
    assert (max(ratios) <= 1.035) == holds


@claim(SUBSET, lambda k, e: k < 3 * e + 2, lambda k, e: k < e + 2, lambda k, e: k < 9 * e)
def test_randomized_response_is_for_few_values(
    stated: Callable[[int, float], bool], *, holds: bool
) -> None:
    """Of a rare value randomized response has less noise than optimized unary encoding just where
    k < 3 e^epsilon + 2 [Wang, Blocki, Li & Jha 2017]."""
    found = [
        (float(q * (1 - q) / (p - q) ** 2) < 4 * e / (e - 1) ** 2) == stated(k, e)
        for k in range(2, 60)
        for epsilon in (Fraction(1), Fraction(2))
        for response, e in [(SubsetSelection.for_epsilon(epsilon, k, 1), exp(epsilon))]
        for p, q in [(response.P, response.Q)]
    ]

    assert all(found) == holds


@claim(MEAN, lambda e: ((e + 1) / (e - 1)) ** 2, lambda e: e / (e - 1) ** 2)
def test_a_mean_has_less_noise_than_one_bit(stated: Variance, *, holds: bool) -> None:
    """A mean from -1 to 1 by one bit a person has the worst variance ((e^eps + 1) / (e^eps - 1))^2
    / n; four bits have less, and no bias [Duchi, Jordan & Wainwright 2018]."""
    found = []
    for epsilon in EPSILONS:
        mechanism = MeanMechanism.for_epsilon(epsilon)
        worst = Fraction(0)
        for point in (0, GRID // 4, GRID // 2, GRID):
            row, decoded = sent(mechanism, point), mechanism.decoded
            mean = sum(p * decoded[level] for level, p in row.items())
            assert mean == Fraction(point, GRID)
            worst = max(worst, sum(p * (decoded[level] - mean) ** 2 for level, p in row.items()))
        found.append(4 * worst < stated(exp(epsilon)))  # 4: from 0 to 1 to twice that range

    assert all(found) == holds


@claim(MECHANISMS, lambda e: min(4, e**2) * (e - 1) ** 2, lambda e: (e - 1) ** 2 / 10)
def test_a_report_holds_little_information(stated: Variance, *, holds: bool) -> None:
    """The two divergences between reports of two populations sum to min(4, e^(2 eps)) (e^eps - 1)^2
    TV^2 at most, so telling them apart takes some 1 / (eps TV)^2 people [Duchi, Jordan & Wainwright
    2018, theorem 1].

    Over the exact rows of two families and pairs of populations. Planted: a tenth of (e - 1)^2.
    """
    found = []
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(2)):
        for rows in (
            rows_of(SubsetSelection.for_epsilon(epsilon, 4, 1)),
            rows_of(ProjectiveGeometry.for_epsilon(epsilon, 4, 2, 3)),
        ):
            for a, b in product((0.0, 0.3, 0.9), (0.5, 1.0)):
                one, two = (
                    [float(share * p + (1 - share) * q) for p, q in zip(*rows[:2], strict=True)]
                    for share in (map(Fraction, (a, b)))
                )
                distance = sum((p - q) * log(p / q) for p, q in zip(one, two, strict=True))
                found.append(distance <= stated(exp(epsilon)) * (a - b) ** 2)

    assert all(found) == holds


@claim(TRUST, lambda n: (n / 2) ** 0.5, lambda n: n / 2, lambda n: 2.0)
def test_the_local_model_costs_the_root_of_n(stated: Variance, *, holds: bool) -> None:
    """At the same epsilon the error of a share is some sqrt(n) times as large in the local model as
    under a trusted curator: for a bit and add-remove exactly sqrt(n / 2) [Chan, Shi & Song
    2012]."""
    found = []
    for n, epsilon in product((100, 10**4, 10**6), EPSILONS):
        bit = SubsetSelection.for_epsilon(epsilon, 2, 1)
        local = (handler_of(bit).noise_variance() / n) ** 0.5
        central = DiscreteLaplaceNoise(1 / float(epsilon)).deviation / n
        found.append(isclose(local / central, stated(n), rel_tol=1e-6))

    assert all(found) == holds
