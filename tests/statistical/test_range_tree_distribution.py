"""Seeded reports of ranges follow the claimed distribution, and none of an epsilon 30 % away.

All seeds are fixed, so nothing flakes; ALPHA is the probability that a fresh seed rejects a right
distribution.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from veilcount_client.testing import SeededRandomSource
from veilcount_shared.mechanisms import ProjectiveGeometry, RangeTree, SubsetSelection

ALPHA = 1e-6
REPORTS = 60_000
BUCKETS = {"the first bucket": 0, "an inner bucket": 100, "the last bucket": 255}
EPSILONS = (Fraction(1), Fraction(2))


@cache
def sent(bucket: int, epsilon: Fraction) -> NDArray[np.int64]:
    """The seeded reports of a number, counted."""
    mechanism, randomness = RangeTree.for_epsilon(epsilon), SeededRandomSource(bucket)
    drawn = Counter(mechanism.randomize(bucket << 24, randomness) for _ in range(REPORTS))
    assert drawn.total() == REPORTS
    return np.array([drawn[message] for message in range(mechanism.messages)])


def at(
    level: SubsetSelection | ProjectiveGeometry, epsilon: Fraction
) -> SubsetSelection | ProjectiveGeometry:
    """The same messages at another epsilon."""
    if isinstance(level, SubsetSelection):
        return SubsetSelection.for_epsilon(epsilon, level.k, level.w)
    return ProjectiveGeometry.for_epsilon(epsilon, level.k, level.q, level.t)


def fits(bucket: int, epsilon: Fraction, factor: Fraction, weights: tuple[int, ...]) -> bool:
    """Whether the counts fit the distribution at epsilon x factor, levels by these weights."""
    honest = RangeTree.for_epsilon(epsilon)
    claimed = RangeTree(tuple(at(level, epsilon * factor) for level in honest.levels))
    chances = []
    for message in range(claimed.messages):
        place = claimed.level(message)
        level = claimed.levels[place]
        owned = level.support_size if isinstance(level, ProjectiveGeometry) else 1
        own = claimed.supports(message, bucket)
        share = level.P / owned if own else (1 - level.P) / (level.messages - owned)
        chances.append(float(share) * weights[place] / sum(weights))
    distribution = np.array(chances)
    statistic = float(
        (((sent(bucket, epsilon) - REPORTS * distribution) ** 2) / (REPORTS * distribution)).sum()
    )

    assert REPORTS * distribution.min() >= 5, "enough of each for the chi-square"
    return statistic <= float(chi2.isf(ALPHA, len(distribution) - 1))


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("bucket", BUCKETS.values(), ids=BUCKETS)
def test_reports_follow_the_claimed_distribution(bucket: int, epsilon: Fraction) -> None:
    """Chi-square over every message, alpha = 1e-6."""
    assert fits(bucket, epsilon, Fraction(1), (1, 1, 1, 1))


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("bucket", BUCKETS.values(), ids=BUCKETS)
@pytest.mark.parametrize("factor", [Fraction(7, 10), Fraction(13, 10)], ids=["lower", "higher"])
def test_a_distribution_of_another_epsilon_is_rejected(
    bucket: int, epsilon: Fraction, factor: Fraction
) -> None:
    assert not fits(bucket, epsilon, factor, (1, 1, 1, 1))


@pytest.mark.parametrize("place", range(4))
def test_a_level_drawn_a_tenth_more_often_is_rejected(place: int) -> None:
    weights = tuple(11 if level == place else 10 for level in range(4))

    assert not fits(100, Fraction(1), Fraction(1), weights)
