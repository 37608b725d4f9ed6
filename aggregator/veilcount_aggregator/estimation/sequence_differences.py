"""The difference of two independent confidence sequences, valid at every look.

The wealth of both sides together is a martingale too, so a pair of truths is left out where the
product reaches 2 / alpha on one side: there one side may have more if the other has less. This is
narrower than two intervals with half the error each, which any dependence allows.
"""

from __future__ import annotations

from itertools import count

import numpy as np

from .confidence_intervals import Ends, Floats
from .confidence_sequences import LEAST, AnytimeEstimator
from .estimator import IntervalTarget

SPLITS = 24  # of the bound between the two sides
FARTHEST = 34.0  # of a log wealth: p below 4e-15 is not resolved


def difference(
    one: AnytimeEstimator, two: AnytimeEstimator, alpha: float, target: IntervalTarget
) -> Ends:
    """Return the ends of first less second."""
    places = range(SPLITS + 1)
    step = _step(alpha)
    first, second = ([_ends(side, place, step, target) for place in places] for side in (one, two))
    return _apart(first, second)


def p_of_difference(
    one: AnytimeEstimator, two: AnytimeEstimator, alpha: float, target: IntervalTarget
) -> Floats:
    """Return for each figure the error at which its interval touches 0, interpolated in its log.

    At `alpha` it agrees with the interval, whose steps are the same.
    """
    step, above = _step(alpha), one.points > two.points
    first, second, gaps, bounds = [], [], [], []
    for place in count():
        first.append(_ends(one, place, step, target))
        second.append(_ends(two, place, step, target))
        bounds.append(2 * LEAST + place * step)
        if place:
            low, high = _apart(first, second)
            gaps.append(np.where(above, low, -high))
            if (gaps[-1] <= 0).all() or bounds[-1] > FARTHEST:
                break
    narrowing = np.minimum.accumulate(np.array(gaps), axis=0)
    touched = np.array([np.interp(0, -column, bounds[1:]) for column in narrowing.T], np.float64)
    p: Floats = np.minimum(2 * np.exp(-np.minimum(touched, FARTHEST)), 1.0)
    return p


def _step(alpha: float) -> float:
    return (float(np.log(2 / alpha)) - 2 * LEAST) / SPLITS


def _ends(side: AnytimeEstimator, place: int, step: float, target: IntervalTarget) -> Ends:
    """Return where the log wealth of a side reaches a step above the least."""
    return side.interval(2 * float(np.exp(-LEAST - place * step)), target)


def _apart(first: list[Ends], second: list[Ends]) -> Ends:
    """Return the ends that remain when the wealth is split between the sides in every way.

    Of each step the first's end is taken at its end and the second's at its start: the true end
    lies between them, so that the steps cost width and no coverage.
    """
    one, two = np.array(first[1:]), np.array(second[:0:-1])
    return (one[:, 0] - two[:, 1]).min(axis=0), (one[:, 1] - two[:, 0]).max(axis=0)
