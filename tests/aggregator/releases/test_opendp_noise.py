"""The noise: OpenDP draws the distribution of the intervals, within the epsilon paid.

Seeds do not reach OpenDP, whose randomness is the system's: ALPHA is the chance that a run fails by
chance alone. A distribution of a scale 30 % away is rejected by the same test.
"""

from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction
from functools import cache
from math import isclose, nextafter
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from veilcount_analysis.releases import DiscreteLaplaceNoise
from veilcount_analysis.releases.opendp_noise import add_noise, calibrated_scale

ALPHA = 1e-9
DRAWS = 10_000

PRICES = [(1, "1"), (2, "1"), (1, "0.7"), (2, "0.7"), (1, "0.000001"), (120, "0.3"), (1, "16")]


def delivered(sensitivity: int, scale: float) -> Fraction:
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    mechanism: Any = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    return Fraction(mechanism.map(sensitivity))


@pytest.mark.parametrize(("sensitivity", "price"), PRICES)
def test_a_scale_delivers_no_more_than_was_paid_and_hardly_less(
    sensitivity: int, price: str
) -> None:
    epsilon = Fraction(price)
    scale = calibrated_scale(sensitivity, epsilon)

    assert delivered(sensitivity, scale) <= epsilon
    assert isclose(scale, sensitivity / float(epsilon), rel_tol=1e-14)


def test_the_quotient_itself_would_deliver_more_than_was_paid() -> None:
    """1 / 0.7 as a float: 0.7000000000000001. Hence the look at what is delivered."""
    quotient = 1 / 0.7

    assert delivered(1, quotient) > Fraction("0.7")
    assert calibrated_scale(1, Fraction("0.7")) >= nextafter(quotient, 2)


# -- the distribution ------------------------------------------------------------------------------


@cache
def drawn(scale: float) -> NDArray[np.int64]:
    return np.array(add_noise([0] * DRAWS, scale))


def fits(noise: NDArray[np.int64], scale: float) -> bool:
    """Chi-square of every value that is likely enough, the tails together."""
    q = np.exp(-1 / scale)
    edge = max(int(scale * 5), 2)
    places = np.arange(-edge, edge + 1)
    chances = (1 - q) / (1 + q) * q ** abs(places)
    tail = float(exact_tail(scale, edge)) / 2
    expected = len(noise) * np.array([tail, *chances, tail])
    clipped = np.clip(noise, -edge - 1, edge + 1) + edge + 1
    found = np.bincount(clipped, minlength=len(expected))

    assert expected.min() > 5
    statistic = float(((found - expected) ** 2 / expected).sum())
    return statistic <= float(chi2.isf(ALPHA, len(expected) - 1))


@pytest.mark.parametrize("scale", [0.7, 1.4285714285714288, 3.0])
def test_noise_follows_the_exact_distribution_and_no_other(scale: float) -> None:
    """alpha = 1e-9; the distributions at 0.7 and at 1.3 of the scale is rejected."""
    noise = drawn(scale)

    assert fits(noise, scale)
    assert not fits(noise, 0.7 * scale)
    assert not fits(noise, 1.3 * scale)


@pytest.mark.parametrize("scale", [0.7, 3.0])
def test_simulated_noise_follows_the_same_distribution(scale: float) -> None:
    distribution, generator = DiscreteLaplaceNoise(scale), np.random.default_rng(1)
    noise = np.array(distribution.draw(DRAWS, generator))

    assert fits(noise, scale)
    assert not fits(noise, 1.3 * scale)


def test_noise_is_added_to_the_numbers_as_they_are() -> None:
    far = [1 << 40, -(1 << 40), 0]
    found = add_noise(far, 1.0)

    assert [abs(one - two) < 60 for one, two in zip(far, found, strict=True)] == [True] * 3


# -- intervals and moments -------------------------------------------------------------------------

SCALES = [0.05, 0.3, 1.0, 2.857142857142857, 17.0, 1e4]


def exact_tail(scale: float, width: int) -> Decimal:
    """P(|X| > width), to 50 digits."""
    getcontext().prec = 50
    q = (-1 / Decimal(scale)).exp()
    return 2 * q ** (width + 1) / (1 + q)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("alpha", ["0.32", "0.05", "0.025", "0.000001"])
def test_a_half_width_covers_exactly_and_no_narrower_one_does(scale: float, alpha: str) -> None:
    width = DiscreteLaplaceNoise(scale).half_width(float(alpha))

    assert exact_tail(scale, width) <= Decimal(alpha)
    if width:
        assert exact_tail(scale, width - 1) > Decimal(alpha) * (1 - Decimal("1e-9"))


@pytest.mark.parametrize("scale", [0.3, 1.0, 17.0])
def test_moments_are_those_of_the_distribution(scale: float) -> None:
    distribution, q = DiscreteLaplaceNoise(scale), np.exp(-1 / scale)
    places = np.arange(-int(200 * scale) - 50, int(200 * scale) + 51)
    chances = (1 - q) / (1 + q) * q ** abs(places)
    t = 0.4 / scale

    assert isclose(float(chances.sum()), 1)
    assert isclose(distribution.deviation**2, float((chances * places.astype(float) ** 2).sum()))
    assert isclose(distribution.log_moment(t), float(np.log((chances * np.exp(t * places)).sum())))


@pytest.mark.parametrize("alpha", [0.5, 0.05, 0.001])
@pytest.mark.parametrize("scale", [10.0, 2.0, 1.0, 1 / 3])
def test_the_half_width_of_a_difference_is_the_least_that_covers(
    scale: float, alpha: float
) -> None:
    """Two independent draws: the convolution of their exact distributions."""
    q, edge = np.exp(-1 / scale), int(45 * scale)
    one = (1 - q) / (1 + q) * q ** abs(np.arange(-edge, edge + 1))
    difference = np.convolve(one, one)
    distance = abs(np.arange(-2 * edge, 2 * edge + 1))
    width = DiscreteLaplaceNoise(scale).difference_half_width(alpha)

    assert difference[distance > width].sum() <= alpha + 1e-9
    assert width == 0 or difference[distance > width - 1].sum() > alpha


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_is_a_number_above_0(scale: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        DiscreteLaplaceNoise(scale)
