"""What covers alone give one report, and how many of them a claim needs.

Nobody else counts: every other report may be the server's own. Then the batch is one report among m
covers, and delta is exactly E[max(0, W_1 + ... + W_n)] / n with n = m + 1 uniform messages, where W
is (Pr[y|x] - e^eps Pr[y|x']) / Pr[y]: the identity behind the blanket, with nothing left to bound.
It is summed exactly where the two values' messages are disjoint, else on the blanket's grid, which
rounds up.

Whether a definition has the covers that its promise needs: by them alone, never by its n.

The error of a figure of a shuffled batch: the devices' noise, and that of the covers.

The expectation of the covers is subtracted; what they vary by stays. It is m times the variance of
one, divided by n^2: about as much as the devices' noise at n = 1,000, and less and less of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import exp, nextafter, sqrt

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.composition import Overlap
from veilcount_shared.epsilon import EPSILON_GRAIN
from veilcount_shared.errors import DefinitionError
from veilcount_shared.mechanisms import Randomizer

from ...mechanisms import handler_of
from ..amplification.blanket import BlanketReport, mean_excess
from .count_pair import CountPair, exact_overlap


def shuffled_error(mechanism: Randomizer, n: int, covers: int) -> float:
    """Return the standard error of a cohort's figure, of a share where all are equal."""
    handler = handler_of(mechanism)
    return sqrt(handler.noise_variance() / n + covers * handler.cover_variance() / n**2)


def require_covers(collection: Collection) -> None:
    """Refuse a definition whose covers do not give its epsilon and delta by themselves."""
    rules = collection.batch
    if rules is None or rules.epsilon is None or rules.delta is None:
        return
    needed = least_covers(collection.mechanism, rules.epsilon, rules.delta)
    if rules.covers < needed:
        fix = (
            f"give {needed:,} or more: fewer do not give epsilon = {float(rules.epsilon):g} at"
            f" delta = {float(rules.delta):g} by themselves"
        )
        raise DefinitionError("batch.covers", rules.covers, fix, collection=collection.name)


MOST_COVERS = 100_000_000


def cover_delta(overlaps: Sequence[Overlap], covers: int, epsilon: float) -> float:
    """Return delta of one report among covers, rounded up."""
    if exp(epsilon) >= max(overlap.ratio for overlap in overlaps):
        return 0.0
    exact = exact_overlap(overlaps, covers)
    if exact is not None:
        return CountPair.from_overlap(exact, covers).delta(epsilon)
    return grid_delta(overlaps, covers, epsilon)


def grid_delta(overlaps: Sequence[Overlap], covers: int, epsilon: float) -> float:
    """Bound delta on the grid of the blanket: for any mechanism, and faster than exactly."""
    if exp(epsilon) >= max(overlap.ratio for overlap in overlaps):
        return 0.0
    return mean_excess(_cover_report(overlaps, epsilon), covers + 1)


def _cover_report(overlaps: Sequence[Overlap], epsilon: float) -> BlanketReport:
    """Return the distribution of W under a cover: four values for each overlap, equally likely."""
    e = exp(epsilon)
    values, weights = [], []
    for overlap in overlaps:
        ratio, own, alone = float(overlap.ratio), float(overlap.own), float(overlap.alone)
        scale = ratio * own + 1 - own
        outcomes = (ratio - e, 1 - ratio * e, -(e - 1) * ratio, -(e - 1))
        values += [outcome / scale for outcome in outcomes]
        weights += [alone, alone, own - alone, 1 - own - alone]
    return BlanketReport(np.array(values), np.array(weights) / len(overlaps))


@lru_cache(maxsize=256)
def least_covers(mechanism: Randomizer, epsilon: Fraction, delta: Fraction) -> int:
    """Return the least number of covers that gives (epsilon, delta) by itself.

    One cover more never makes delta larger: the server could add it by itself.
    """
    if mechanism.epsilon <= epsilon:
        return 0
    overlaps, at = handler_of(mechanism).overlaps(), nextafter(float(epsilon), 0)

    def enough(covers: int) -> bool:
        return cover_delta(overlaps, covers, at) <= delta

    high = 1
    while not enough(high):
        high *= 2
        if high > MOST_COVERS:
            raise ValueError(
                f"delta = {float(delta):g}: below what rounding leaves of it; give a larger one"
            )
    return bisect_left(range(high), True, lo=high // 2, key=enough)


@lru_cache(maxsize=256)
def cover_epsilon(mechanism: Randomizer, covers: int, delta: Fraction) -> Fraction:
    """Return the least epsilon, in millionths, that so many covers give by themselves."""
    overlaps = handler_of(mechanism).overlaps()
    steps = range(int(mechanism.epsilon * EPSILON_GRAIN))
    least = bisect_left(
        steps, True, key=lambda step: cover_delta(overlaps, covers, step / EPSILON_GRAIN) <= delta
    )
    return min(Fraction(least, EPSILON_GRAIN), mechanism.epsilon)


def best_guess(mechanism: Randomizer, covers: int) -> float:
    """Return how often the best guess between two equally likely values is right, on average."""
    return (1 + cover_delta(handler_of(mechanism).overlaps(), covers, 0.0)) / 2


def guess_after_unlucky(epsilon: float) -> float:
    """Return how sure the best guess may be after the least favourable outcome that is promised."""
    return 1 / (1 + exp(-epsilon))
