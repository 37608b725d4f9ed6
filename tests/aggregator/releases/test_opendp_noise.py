"""The noise: OpenDP and simulations draw the distribution of the intervals, and no other.

Seeds do not reach OpenDP, whose randomness is the system's: ALPHA is the chance that a run fails by
chance alone. A distribution of a scale 30 % away is rejected by the same test.
"""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from veilcount_analysis.releases import DiscreteGaussianNoise, DiscreteLaplaceNoise
from veilcount_analysis.releases.opendp_noise import add_gaussian_noise, add_noise

ALPHA = 1e-9
DRAWS = 10_000
EACH = 5  # expected draws of a cell, at the least, for the chi-square

Noise = DiscreteGaussianNoise | DiscreteLaplaceNoise
Floats = NDArray[np.float64]

#: both kinds of noise, and how OpenDP adds them
KINDS = {DiscreteLaplaceNoise: add_noise, DiscreteGaussianNoise: add_gaussian_noise}
each_kind = pytest.mark.parametrize("kind", KINDS)


def distribution(noise: Noise) -> tuple[NDArray[np.int64], Floats]:
    """Return places, and the probability of each by the formula: not by the code under test."""
    laplace = isinstance(noise, DiscreteLaplaceNoise)
    reach = int((45 if laplace else 12) * noise.scale) + 60
    places = np.arange(-reach, reach + 1)
    steps = abs(places) / noise.scale
    weights = np.exp(-steps if laplace else -(steps**2) / 2)
    return places, weights / weights.sum()


def fits(drawn: list[int], noise: Noise) -> bool:
    """Chi-square of every value that is likely enough, the tails together."""
    places, chances = distribution(noise)
    tails = np.cumsum(chances) - chances  # below each place
    likely = (places <= 0) & (DRAWS * tails > EACH) & (DRAWS * chances > EACH)
    edge = -int(places[likely].min())
    inside = chances[abs(places) <= edge]
    tail = (1 - inside.sum()) / 2
    expected = DRAWS * np.array([tail, *inside, tail])
    observed = np.bincount(np.clip(drawn, -edge - 1, edge + 1) + edge + 1, minlength=len(expected))

    statistic = float(((observed - expected) ** 2 / expected).sum())
    return statistic <= float(chi2.isf(ALPHA, len(expected) - 1))


@each_kind
@pytest.mark.parametrize("scale", [0.7, 1.4285714285714288, 3.0])
def test_noise_follows_the_exact_distribution_and_no_other(kind: type[Noise], scale: float) -> None:
    """alpha = 1e-9; a scale of 0.7 or 1.3 times is rejected, of OpenDP's and simulated noise."""
    simulated = kind(scale).draw(DRAWS, np.random.default_rng(5))
    for drawn in (KINDS[kind]([0] * DRAWS, scale), simulated):
        assert fits(drawn, kind(scale))
        assert not fits(drawn, kind(0.7 * scale))
        assert not fits(drawn, kind(1.3 * scale))


def test_noise_is_added_to_the_numbers_as_they_are() -> None:
    far = [1 << 40, -(1 << 40), 0]
    noised = add_noise(far, 1.0)

    assert [abs(one - two) < 60 for one, two in zip(far, noised, strict=True)] == [True] * 3


@each_kind
@pytest.mark.parametrize("scale", [0.3, 0.8, 1.0, 2.5, 17.0, 300.0])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 0.025, 1e-6])
def test_a_half_width_covers_and_is_hardly_wider_than_the_least(
    kind: type[Noise], scale: float, alpha: float
) -> None:
    """Of one draw, and of the difference of two; Laplace noise has the very least."""
    noise = kind(scale)
    places, one = distribution(noise)
    two = np.convolve(one, one)
    apart = abs(np.arange(len(two)) - len(two) // 2)
    width, difference = noise.half_width(alpha), noise.difference_half_width(alpha)
    least = isinstance(noise, DiscreteLaplaceNoise)
    slack = 1 if least else 2

    assert one[abs(places) > width].sum() <= alpha * (1 + 1e-9)
    assert width < slack or one[abs(places) > width - slack].sum() > alpha * (1 - 1e-9)
    assert two[apart > difference].sum() <= alpha * (1 + 1e-9)
    assert not (least and difference) or two[apart > difference - 1].sum() > alpha * (1 - 1e-9)


@each_kind
@pytest.mark.parametrize("scale", [0.3, 1.0, 17.0])
def test_moments_are_those_of_the_distribution(kind: type[Noise], scale: float) -> None:
    """Variance, and the logarithm of the moment at t: exact, or a bound of Gaussian noise."""
    noise, t = kind(scale), 0.4 / scale
    places, chances = distribution(noise)
    exact = [float(chances @ places.astype(float) ** 2), log(chances @ np.exp(t * places))]
    stated = [noise.deviation**2, noise.log_moment(t)]

    if kind is DiscreteLaplaceNoise:
        assert stated == pytest.approx(exact, rel=1e-9)
    else:
        assert all(one <= bound * (1 + 1e-9) for one, bound in zip(exact, stated, strict=True))


@each_kind
@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_is_a_number_above_0(kind: type[Noise], scale: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        kind(scale)
