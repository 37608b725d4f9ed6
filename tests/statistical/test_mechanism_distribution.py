"""Seeded reports, of clients and simulated, follow the claimed distribution and no other.

The enumeration proves the distribution of small domains; here the same code runs at real sizes.
All seeds are fixed, so nothing flakes; ALPHA is the probability that a fresh seed rejects a right
distribution.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import sqrt

import numpy as np
import pytest
from scipy.stats import norm

from veilcount_analysis.mechanisms import handler_of
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

from .distributions import (
    ALPHA,
    HIGHER,
    LOWER,
    AnyMechanism,
    Ints,
    Supporting,
    fits,
    levels,
    message_distribution,
    messages,
    supports,
    with_epsilon,
)

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

    def simulated(self, path: str) -> Ints:
        """The reports of as many simulated devices, counted at once or message by message."""
        handler, generator = handler_of(self.mechanism), np.random.default_rng(5)
        rows = np.full(self.reports, self.row)
        if path == "at once":
            return handler.draw_counters(
                np.bincount(rows, minlength=self.mechanism.inputs), generator
            )
        sent = handler.draw_messages(rows, generator)
        return np.bincount(sent, minlength=len(messages(self.mechanism)))

    def fits(self, counts: Ints, factor: Fraction = Fraction(1)) -> bool:
        """Whether the counts may be of reports at epsilon x factor."""
        return fits(counts, message_distribution(with_epsilon(self.mechanism, factor), self.row))


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
        f"bucket {bucket} of a tree": Claim(TREES[epsilon], bucket, bucket << 24, 60_000)
        for bucket, epsilon in ((0, 2), (100, 1), (255, 2))
    },
}


REPORTS = [
    *((name, "client") for name in CLAIMS),
    *product(
        ["plane of 8", "plane of 17", "bucket", "bucket 100 of a tree"], ["at once", "messages"]
    ),
]


@pytest.mark.parametrize(("name", "path"), REPORTS)
def test_reports_follow_the_claimed_distribution_and_no_other(name: str, path: str) -> None:
    """Chi-square over every message; 30 % less and 30 % more epsilon are both rejected."""
    claim = CLAIMS[name]
    counts = claim.counts if path == "client" else claim.simulated(path)

    assert claim.fits(counts)
    assert not claim.fits(counts, LOWER)
    assert not claim.fits(counts, HIGHER)


@pytest.mark.parametrize("place", range(4))
def test_a_level_drawn_a_tenth_more_often_is_rejected(place: int) -> None:
    claim = CLAIMS["bucket 100 of a tree"]
    weights = np.where(levels(TREES[1]) == place, 11, 10) / 10.25

    assert not fits(claim.counts, weights * message_distribution(TREES[1], claim.row))


# -- the supports at shipped sizes: exact z --------------------------------------------------------

LARGE: dict[str, Supporting] = {
    "mask of 256": SubsetSelection.for_epsilon(Fraction(1), 256, 69),
    "packed 22 of 65536": SubsetSelection.for_epsilon(Fraction(8), 65_536, 22),
    "plane of 87381": ProjectiveGeometry.for_epsilon(Fraction(1), 65_536, 4, 9),
    "plane of 151740": ProjectiveGeometry.for_epsilon(Fraction(4), 65_536, 53, 4),
}


def agrees(found: int, reports: int, probability: Fraction) -> bool:
    """Whether a count passes for a binomial one, two-sided at ALPHA."""
    p = float(probability)
    deviation = (found - reports * p) / sqrt(reports * p * (1 - p))
    return abs(deviation) <= float(norm.isf(ALPHA / 2))


@pytest.mark.parametrize("name", LARGE)
def test_a_large_mechanism_supports_the_input_with_p_and_another_with_q(name: str) -> None:
    """The two constants that the server debiases with; P at 30 % less or more is rejected."""
    mechanism, randomness, reports = LARGE[name], SeededRandomSource(7), 5_000
    x, other = mechanism.k - 1, mechanism.k // 3
    sent = [mechanism.randomize(x, randomness) for _ in range(reports)]
    own, others = (sum(supports(mechanism, m, each) for m in sent) for each in (x, other))

    assert agrees(own, reports, mechanism.P)
    assert agrees(others, reports, mechanism.Q)
    assert not agrees(own, reports, with_epsilon(mechanism, LOWER).P)
    assert not agrees(own, reports, with_epsilon(mechanism, HIGHER).P)


class Lazy(SubsetSelection):
    """A planted mistake: the coin is thrown with floats of 8 bits."""

    def randomize(self, x: int, randomness: RandomSource) -> int:
        inside = randomness.below(256) < round(float(self.P) * 256) + 4
        return x if inside else (x + 1 + randomness.below(self.k - 1)) % self.k


def test_a_probability_off_by_one_in_sixty_is_rejected() -> None:
    """An error of 4 / 256 in P is far from 30 % in epsilon, and still seen."""
    claim = Claim(Lazy.for_epsilon(Fraction(1), 10, 1), 3)

    assert not claim.fits(claim.counts)
