"""What a batch gives if at least some of its devices are honest: never a promise.

An honest report is a uniform message with the probability of the mechanism's blanket, whatever its
value. Given how many are, they are covers like the shuffler's own [BBGN19, Lemma 5.3].
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil

import numpy as np

from veilcount_shared.composition import Overlap
from veilcount_shared.epsilon import EPSILON_GRAIN
from veilcount_shared.mechanisms import Randomizer

from ...mechanisms import handler_of
from ...scipy_modules import stats
from .covers import grid_delta

PARTS = 24  # of the number of uniform reports: the least of each stands for all
TAIL = 1e-12  # of the number that lies below the first part


def honest_delta(overlaps: Sequence[Overlap], honest: int, covers: int, epsilon: float) -> float:
    """Return an upper bound on delta of one of `honest` honest reports among covers.

    Of several mechanisms of which a report draws one, the least blanket stands for all.
    """
    blanket = float(min(overlap.blanket for overlap in overlaps))
    return sum(
        weight * grid_delta(overlaps, covers + uniform, epsilon)
        for uniform, weight in _uniform_reports(honest - 1, blanket)
    )


@lru_cache(maxsize=64)
def _uniform_reports(others: int, blanket: float) -> list[tuple[int, float]]:
    """Return numbers of uniform reports among the others, each for all up to the next."""
    low, high = (int(stats.binom.ppf(p, others, blanket)) for p in (TAIL, 1 - TAIL))
    step = max(1, ceil((high - low) / PARTS))
    firsts = np.array([0, *range(max(low, 1), high + 1, step)])
    below = stats.binom.cdf(firsts[1:] - 1, others, blanket)
    weights = np.diff(np.concatenate([[0.0], below, [1.0]]))
    return list(zip(firsts.tolist(), weights.tolist(), strict=True))


@lru_cache(maxsize=256)
def honest_epsilon(mechanism: Randomizer, honest: int, covers: int, delta: Fraction) -> Fraction:
    """Return the epsilon, in thousandths, if so many devices of a batch are honest."""
    overlaps, grain = handler_of(mechanism).overlaps(), EPSILON_GRAIN // 1000
    steps = range(int(mechanism.epsilon * EPSILON_GRAIN) // grain)
    least = bisect_left(
        steps, True, key=lambda step: honest_delta(overlaps, honest, covers, step / 1000) <= delta
    )
    return min(Fraction(least, 1000), mechanism.epsilon)
