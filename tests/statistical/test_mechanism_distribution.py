"""Seeded reports follow the claimed distribution, and none of an epsilon 30 % away.

The enumeration proves the distribution of small domains; here the same code runs at real sizes.
All seeds are fixed, so nothing flakes; ALPHA is the probability that a fresh seed rejects a right
distribution.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import isqrt, sqrt

import numpy as np
import pytest
from scipy.stats import norm

from tests.statistical.distributions import (
    ALPHA,
    HIGHER,
    LOWER,
    AnyMechanism,
    Floats,
    Ints,
    Supporting,
    fits,
    levels,
    message_distribution,
    messages,
    supports,
    with_epsilon,
)
from veilcount_client.testing import SeededRandomSource
from veilcount_shared.domain import GRID
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    MeanMechanism,
    ProjectiveGeometry,
    RangeTree,
    SquareWave,
    SubsetSelection,
)
from veilcount_shared.randomness import RandomSource

# -- every message of one input: chi-square --------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """A mechanism, a row of its transition matrix, and the point of the grid that takes it."""

    mechanism: AnyMechanism
    row: int
    point: int | None = None
    reports: int = 40_000

    @cached_property
    def counts(self) -> Ints:
        """The seeded reports of one input, by message."""
        x, randomness = self.row if self.point is None else self.point, SeededRandomSource(self.row)
        sent = Counter(self.mechanism.randomize(x, randomness) for _ in range(self.reports))
        counts = np.array([sent[message] for message in messages(self.mechanism)])
        assert counts.sum() == self.reports, "every report is a message"
        return counts

    def fits(self, factor: Fraction) -> bool:
        """Whether the reports may be those of epsilon x factor."""
        return fits(
            self.counts, message_distribution(with_epsilon(self.mechanism, factor), self.row)
        )


WIDE_MEAN = MeanMechanism.for_epsilon(Fraction(4))
TREES = {epsilon: RangeTree.for_epsilon(Fraction(epsilon)) for epsilon in (1, 2)}
CLAIMS = {
    "binary": Claim(SubsetSelection.for_epsilon(Fraction(1), 2, 1), 1),
    "response": Claim(SubsetSelection.for_epsilon(Fraction(2), 10, 1), 7),
    "mask": Claim(SubsetSelection.for_epsilon(Fraction(1), 10, 3), 4),
    "packed": Claim(SubsetSelection.for_epsilon(Fraction(2), 16, 2), 15),
    "plane of 2": Claim(ProjectiveGeometry.for_epsilon(Fraction("0.5"), 200, 2, 8), 123),
    "plane of 4": Claim(ProjectiveGeometry.for_epsilon(Fraction(1), 300, 4, 5), 299),
    "plane of 8": Claim(ProjectiveGeometry.for_epsilon(Fraction(2), 500, 8, 4), 77),
    "plane of 17": Claim(ProjectiveGeometry.for_epsilon(Fraction(3), 300, 17, 3), 299),
    "window": Claim(SquareWave.for_epsilon(Fraction(1), 40, 11), 17),
    "low end": Claim(MeanMechanism.for_epsilon(Fraction(1)), 0),
    "high end": Claim(WIDE_MEAN, WIDE_MEAN.inputs - 1, GRID),
    "bucket": Claim(DistributionMechanism.for_epsilon(Fraction(1)), 100, 100 << 24),
    "last bucket": Claim(DistributionMechanism.for_epsilon(Fraction(4)), 255, GRID),
    **{
        f"bucket {bucket} of a tree, epsilon {epsilon}": Claim(tree, bucket, bucket << 24, 60_000)
        for bucket in (0, 100, 255)
        for epsilon, tree in TREES.items()
    },
}


@pytest.mark.parametrize("name", CLAIMS)
def test_reports_follow_the_claimed_distribution(name: str) -> None:
    """Chi-square over every message, alpha = 1e-6."""
    assert CLAIMS[name].fits(Fraction(1))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", CLAIMS)
@pytest.mark.parametrize("factor", [LOWER, HIGHER], ids=["lower", "higher"])
def test_a_distribution_of_another_epsilon_is_rejected(name: str, factor: Fraction) -> None:
    """30 % less and 30 % more are both seen by the same test."""
    assert not CLAIMS[name].fits(factor)


@pytest.mark.parametrize("place", range(4))
def test_a_level_drawn_a_tenth_more_often_is_rejected(place: int) -> None:
    claim = CLAIMS["bucket 100 of a tree, epsilon 1"]
    weights = np.where(levels(TREES[1]) == place, 11, 10) / 10.25

    assert not fits(claim.counts, weights * message_distribution(TREES[1], claim.row))


# -- the supports at shipped sizes: exact z --------------------------------------------------------

LARGE: dict[str, Supporting] = {
    "mask of 256": SubsetSelection.for_epsilon(Fraction(1), 256, 69),
    "packed 22 of 65536": SubsetSelection.for_epsilon(Fraction(8), 65_536, 22),
    "plane of 87381": ProjectiveGeometry.for_epsilon(Fraction(1), 65_536, 4, 9),
    "plane of 151740": ProjectiveGeometry.for_epsilon(Fraction(4), 65_536, 53, 4),
}


@cache
def hits(name: str) -> tuple[int, int, int]:
    """How many reports of one input support it, how many another input, and how many there were."""
    mechanism, randomness = LARGE[name], SeededRandomSource(7)
    reports, x, other = 10_000, mechanism.k - 1, mechanism.k // 3
    sent = [mechanism.randomize(x, randomness) for _ in range(reports)]
    own, others = (sum(supports(mechanism, m, each) for m in sent) for each in (x, other))
    return own, others, reports


def agrees(found: int, reports: int, probability: Fraction) -> bool:
    """Whether a count passes for a binomial one, two-sided at ALPHA."""
    p = float(probability)
    deviation = (found - reports * p) / sqrt(reports * p * (1 - p))
    return abs(deviation) <= float(norm.isf(ALPHA / 2))


@pytest.mark.parametrize("name", LARGE)
def test_a_large_mechanism_supports_the_input_with_p_and_another_with_q(name: str) -> None:
    """The two constants that the server debiases with, at alpha = 1e-6 each."""
    own, other, reports = hits(name)

    assert agrees(own, reports, LARGE[name].P)
    assert agrees(other, reports, LARGE[name].Q)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("factor", [LOWER, HIGHER], ids=["lower", "higher"])
def test_a_large_mechanism_at_another_epsilon_is_rejected(name: str, factor: Fraction) -> None:
    own, _, reports = hits(name)

    assert not agrees(own, reports, with_epsilon(LARGE[name], factor).P)


# -- frequencies: mean squared error over rounds ---------------------------------------------------


@dataclass(frozen=True)
class Rounds:
    """R rounds of n reports of a skewed population over the mechanism's k inputs."""

    mechanism: Supporting
    rounds: int
    reports: int


ROUNDS = {
    "2 values": Rounds(SubsetSelection.for_epsilon(Fraction(1), 2, 1), 300, 200),
    "10 values": Rounds(SubsetSelection.for_epsilon(Fraction(2), 10, 1), 50, 1000),
    "16 values": Rounds(SubsetSelection.for_epsilon(Fraction(1), 16, 4), 40, 800),
    "64 values": Rounds(SubsetSelection.for_epsilon(Fraction(1), 64, 17), 12, 400),
    "85 points": Rounds(ProjectiveGeometry.for_epsilon(Fraction(1), 85, 4, 4), 20, 1500),
    "585 points": Rounds(ProjectiveGeometry.for_epsilon(Fraction(2), 300, 8, 4), 10, 2000),
}


def population(k: int, reports: int) -> list[int]:
    """Halves, thirds, quarters...: the first values are frequent, most are not."""
    return [isqrt(place * place * k // (2 * reports)) % k for place in range(reports)]


@cache
def incidence(mechanism: ProjectiveGeometry) -> Floats:
    """Which message supports which input."""
    points = [mechanism.point(x) for x in range(mechanism.k)]
    normals = [mechanism.point(message) for message in range(mechanism.messages)]
    dot = mechanism._field.minus_dot
    return np.array([[not dot(normal, point) for point in points] for normal in normals], float)


def supported(mechanism: Supporting, messages: list[int]) -> Floats:
    if isinstance(mechanism, ProjectiveGeometry):
        return np.bincount(messages, minlength=mechanism.messages) @ incidence(mechanism)
    members = [x for message in messages for x in mechanism.members(message)]
    return np.bincount(members, minlength=mechanism.k).astype(float)


@cache
def squared_error(name: str) -> float:
    """The mean over rounds of the sum over inputs of (estimate - truth)^2."""
    setting, randomness = ROUNDS[name], SeededRandomSource(11)
    mechanism, truth = setting.mechanism, population(setting.mechanism.k, setting.reports)
    shares = np.bincount(truth, minlength=mechanism.k) / setting.reports
    p, q = float(mechanism.P), float(mechanism.Q)
    total = 0.0
    for _ in range(setting.rounds):
        counts = supported(mechanism, [mechanism.randomize(x, randomness) for x in truth])
        estimates = (counts / setting.reports - q) / (p - q)
        total += float(((estimates - shares) ** 2).sum())
    return total / setting.rounds


def theory(setting: Rounds, factor: Fraction) -> float:
    """The sum over inputs of the cohort variance, at epsilon x factor."""
    mechanism = with_epsilon(setting.mechanism, factor)
    p, q = float(mechanism.P), float(mechanism.Q)
    return (p * (1 - p) + (mechanism.k - 1) * q * (1 - q)) / (setting.reports * (p - q) ** 2)


def within_the_bar(name: str, factor: Fraction) -> bool:
    setting = ROUNDS[name]
    bar = 4 * sqrt(2 / (setting.rounds * (setting.mechanism.k - 1)))
    return abs(squared_error(name) / theory(setting, factor) - 1) <= bar


@pytest.mark.parametrize("name", ROUNDS)
def test_estimates_err_as_much_as_the_theory_says(name: str) -> None:
    """|MSE / theory - 1| <= 4 sqrt(2 / (R (k - 1))): four standard errors, alpha about 1e-4."""
    assert within_the_bar(name, Fraction(1))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ROUNDS)
@pytest.mark.parametrize("factor", [LOWER, HIGHER], ids=["lower", "higher"])
def test_the_error_of_another_epsilon_is_rejected(name: str, factor: Fraction) -> None:
    assert not within_the_bar(name, factor)


# -- means -----------------------------------------------------------------------------------------


REPORTS = 40_000


@cache
def decoded(epsilon: Fraction, point: int) -> tuple[float, float]:
    """The mean and the variance of what seeded reports of one number say, in units of the range."""
    mechanism, randomness = MeanMechanism.for_epsilon(epsilon), SeededRandomSource(3)
    values = np.array([float(value) for value in mechanism.decoded])
    reports = values[[mechanism.randomize(point, randomness) for _ in range(REPORTS)]]
    return float(reports.mean()), float(reports.var())


@pytest.mark.one_in(2)
@pytest.mark.parametrize("point", [0, GRID // 3, GRID // 2, GRID])
@pytest.mark.parametrize("epsilon", [Fraction("0.5"), Fraction(1), Fraction(4)], ids=str)
def test_a_mean_is_unbiased_and_within_its_worst_variance(epsilon: Fraction, point: int) -> None:
    """z at alpha = 1e-6; the variance is a quarter of that on [-1, 1], with 3 % for chance."""
    mean, variance = decoded(epsilon, point)
    z = (mean - point / GRID) / sqrt(variance / REPORTS)

    assert abs(z) <= float(norm.isf(ALPHA / 2))
    assert variance <= float(MeanMechanism.for_epsilon(epsilon).variance) / 4 * 1.03


@pytest.mark.one_in(2)
@pytest.mark.parametrize("factor", [LOWER, HIGHER], ids=["lower", "higher"])
@pytest.mark.parametrize("epsilon", [Fraction("0.5"), Fraction(1), Fraction(4)], ids=str)
def test_a_mean_decoded_at_another_epsilon_is_rejected(epsilon: Fraction, factor: Fraction) -> None:
    own, other = (
        MeanMechanism.for_epsilon(epsilon),
        with_epsilon(MeanMechanism.for_epsilon(epsilon), factor),
    )
    mean, variance = decoded(epsilon, GRID)
    level = own.means[0] + Fraction(mean) * (own.means[-1] - own.means[0])
    shown = float((level - other.means[0]) / (other.means[-1] - other.means[0]))

    assert abs(shown - 1) / sqrt(variance / REPORTS) > float(norm.isf(ALPHA / 2))


# -- wrong randomizers are rejected ----------------------------------------------------------------


class Lazy(SubsetSelection):
    """A planted mistake: the coin is thrown with floats of 8 bits."""

    def randomize(self, x: int, randomness: RandomSource) -> int:
        inside = randomness.below(256) < round(float(self.P) * 256) + 4
        return x if inside else (x + 1 + randomness.below(self.k - 1)) % self.k


def test_a_probability_off_by_one_in_sixty_is_rejected() -> None:
    """An error of 4 / 256 in P is far from 30 % in epsilon, and still seen."""
    assert not Claim(Lazy.for_epsilon(Fraction(1), 10, 1), 3).fits(Fraction(1))


def test_the_claimed_epsilon_is_what_the_tests_vary() -> None:
    """Each mechanism has its claimed epsilon, and another threshold at another."""
    for claim in CLAIMS.values():
        lower, own, higher = (
            message_distribution(with_epsilon(claim.mechanism, factor), claim.row).max()
            for factor in (LOWER, Fraction(1), HIGHER)
        )

        assert with_epsilon(claim.mechanism, Fraction(1)) == claim.mechanism
        assert lower < own < higher
