"""Hiding among the clones: a bound for any randomizer, summed numerically [FMT21, Thm 3.2].

Each of the other n - 1 reports is, with probability e^-eps0, as likely to have come from either of
the two inputs: a clone of the one or of the other, by a fair coin. With C clones, A of them of the
first kind, what is seen is at most (A + 1, C - A) against (A, C - A + 1), where the two change
places with probability 1 / (e^eps0 + 1).
"""

from __future__ import annotations

from math import exp, sqrt

import numpy as np

REACH = 10  # standard deviations of C that are summed,
MARGIN = 40  # and steps further; what lies outside has
TAIL = 1e-20  # at most this probability, by Bernstein's inequality
LOST = 1e-10  # far above the relative error of the tails of a binomial distribution


def clones_delta(ratio: float, reports: int, epsilon: float) -> float:
    """Return an upper bound on delta at this epsilon, where e^eps0 = ratio.

    Given C, the outcomes in favour of the first input are those with A >= t, and the sum over them
    is one point and one tail of a fair binomial distribution.
    """
    from scipy.stats import binom  # noqa: PLC0415 - a third of a server's start, and needed here only

    e = exp(epsilon)
    if e >= ratio:
        return 0.0
    others = reports - 1
    clones = _around(others, 1 / ratio)
    least = np.ceil((clones + 1) * (e * ratio - 1) / ((ratio - 1) * (e + 1)))
    point = (ratio - e) / (ratio + 1) * binom.pmf(least - 1, clones, 0.5)
    tail = (e - 1) * binom.sf(least - 1, clones, 0.5)
    weights = binom.pmf(clones, others, 1 / ratio)
    gain, loss = float(weights @ point), float(weights @ tail)
    return max(gain - loss, 0.0) + LOST * (gain + loss) + TAIL


def _around(trials: int, p: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the numbers of successes that are worth summing."""
    middle, width = trials * p, REACH * sqrt(trials * p * (1 - p)) + MARGIN
    return np.arange(max(0, int(middle - width)), min(trials, int(middle + width) + 1) + 1)
