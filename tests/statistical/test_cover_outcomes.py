"""Shares of values and the mean of a cohort hold among covers, over all outcomes.

Persons and covers are enumerated with their probabilities. Planted: covers that count as persons,
and a half-width without the covers' variance.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.fft import next_fast_len

from veilcount_analysis.estimation import IntervalTarget
from veilcount_analysis.estimation.confidence_intervals import Floats
from veilcount_analysis.estimation.covered_supports import CoveredSupports
from veilcount_analysis.estimation.mean import DecodedMean
from veilcount_analysis.estimation.response_distribution import group_response
from veilcount_analysis.mechanisms.handler import share_handler
from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import MeanMechanism

from ..analysis.estimation.test_covered_supports import shuffled
from .coverage_harness import LEVEL, Support, support
from .test_cover_coverage import COHORT, LEAST, SHARES, SIZES, mean, number, values

FEW = 20  # values: of more, covers support each too rarely to show if they are left in


@pytest.mark.parametrize("target", IntervalTarget)
@pytest.mark.parametrize(("n", "share"), [(n, share) for n in SIZES for share in SHARES])
@pytest.mark.parametrize("kind", [(4, 1, 142), (6, 3, 199), (33, 1, 471)])
def test_shares_of_values_and_groups_cover_in_all_outcomes(
    kind: tuple[int, int, int], n: int, share: float, target: IntervalTarget
) -> None:
    """Of so many values, some together, among so many covers."""
    size, together, covers = kind
    mechanism = share_handler(shuffled(values(size), covers)).mechanism
    response, chance = group_response(mechanism, together), together / size
    persons, true = support(response, n, share, target)
    likely = persons + Support.binomial(covers, chance)
    evidence = CoveredSupports(n, likely.counts, response, 1, covers, chance)

    def covered(one: CoveredSupports) -> float:
        low, high = one.interval(1 - LEVEL, target)
        return float(likely.chances @ ((low <= true + 1e-12) & (true - 1e-12 <= high)))

    left_in = replace(evidence, n=n + covers, covers=0)
    assert covered(evidence) >= LEAST
    assert size > FEW or covered(left_in) < LEAST / 2


@pytest.mark.parametrize("share", [*SHARES, 0.5])
@pytest.mark.parametrize("n", [30, 300])
def test_the_mean_of_a_cohort_covers_in_all_outcomes(n: int, share: float) -> None:
    """Of 30 persons by the exact distribution of their sum and the covers', of more by the normal.

    Planted: the half-width without the covers' variance.
    """
    example = number("mean", 142, mean)
    mechanism, domain = example.collection.mechanism, example.collection.domain
    assert isinstance(mechanism, MeanMechanism)
    assert isinstance(domain, Number)
    errors, chances = errors_of_mean(mechanism, n, round(share * n), example.covers)

    def covered(covers: int) -> float:
        counters = np.zeros(mechanism.counters, np.int64)
        counters[0] = n + covers
        evidence = DecodedMean.from_counters(mechanism, domain, counters, covers)
        low, high = evidence.interval(1 - LEVEL, COHORT)
        return float(chances[np.abs(errors) <= (high - low) / 2 + 1e-12].sum())

    assert covered(example.covers) >= LEAST
    assert covered(0) < 0.9


def errors_of_mean(
    mechanism: MeanMechanism, n: int, holders: int, covers: int
) -> tuple[Floats, Floats]:
    """Every error of the mean of n numbers, of which so many are 1 and the others 0.

    The values of the levels are integers: the sum's distribution is a product of polynomials.
    """
    steps = np.array(mechanism.values) - min(mechanism.values)
    unit = int(np.gcd.reduce(steps))
    steps //= unit
    top = int(steps.max()) * (n + covers)
    size = next_fast_len(top + 1, real=True)
    rows = np.array([[float(chance) for chance in row] for row in mechanism.transition_matrix])
    parts = [
        (rows[0], n - holders),
        (rows[-1], holders),
        (np.full(len(steps), 1 / len(steps)), covers),
    ]
    transform = np.ones(size // 2 + 1, complex)
    for row, count in parts:
        polynomial = np.zeros(size)
        np.add.at(polynomial, steps, row)
        transform = transform * np.fft.rfft(polynomial) ** count
    chances = np.fft.irfft(transform, size)[: top + 1]
    decoded = np.array([float(level) for level in mechanism.decoded])
    lowest, step = decoded.min(), np.ptp(decoded) / steps.max()
    sums = lowest * (n + covers) + step * np.arange(top + 1) - covers * decoded.mean()
    return sums / n - holders / n, chances
