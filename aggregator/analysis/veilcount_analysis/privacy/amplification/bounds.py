"""Bounds behind a shuffler: the epsilon of a batch, and the local epsilon that keeps a batch's.

Hiding among the clones is a bound for any randomizer, summed numerically [FMT21, Thm 3.2]. Each of
the other n - 1 reports is, with probability e^-eps0, as likely to have come from either of the two
inputs: a clone of the one or of the other, by a fair coin. With C clones, A of them of the first
kind, what is seen is at most (A + 1, C - A) against (A, C - A + 1), where the two change places
with probability 1 / (e^eps0 + 1).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, nextafter, sqrt

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.composition import shuffle_amplification
from veilcount_shared.epsilon import EPSILON_GRAIN, EPSILON_MAX, exp_upper
from veilcount_shared.mechanisms import Randomizer

from ...mechanisms import handler_of
from ...scipy_modules import stats
from .blanket import blanket_delta

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

REACH = 10  # standard deviations of C that are summed,
MARGIN = 40  # and steps further; what lies outside has
TAIL = 1e-20  # at most this probability, by Bernstein's inequality
MOST_TERMS = 1000  # of the sum over C: more change delta by less than a thousandth
LOST = 1e-10  # far above the relative error of the tails of a binomial distribution


def clones_delta(ratio: float, reports: int, epsilon: float) -> float:
    """Return an upper bound on delta at this epsilon, where e^eps0 = ratio.

    Given C, the outcomes in favour of the first input are those with A >= t, and the sum over them
    is one point and one tail of a fair binomial distribution.
    """
    e = exp(epsilon)
    if e >= ratio:
        return 0.0
    clones, weights = _clones(reports - 1, 1 / ratio)
    least = np.ceil((clones + 1) * (e * ratio - 1) / ((ratio - 1) * (e + 1)))
    point = (ratio - e) / (ratio + 1) * stats.binom.pmf(least - 1, clones, 0.5)
    tail = (e - 1) * stats.binom.sf(least - 1, clones, 0.5)
    gain, loss = float(weights @ point), float(weights @ tail)
    return max(gain - loss, 0.0) + LOST * (gain + loss) + TAIL


@lru_cache(maxsize=64)  # a search asks for one ratio again and again
def _clones(trials: int, p: float) -> tuple[Numbers, Floats]:
    """Return numbers of clones that are worth summing, and the probability of each.

    One clone more is one coin more for whoever sees the rest: delta falls with their number. So the
    least of some neighbouring numbers may stand for all of them.
    """
    middle, width = trials * p, REACH * sqrt(trials * p * (1 - p)) + MARGIN
    numbers = np.arange(max(0, int(middle - width)), min(trials, int(middle + width) + 1) + 1)
    firsts = np.arange(0, len(numbers), -(-len(numbers) // MOST_TERMS))
    return numbers[firsts], np.add.reduceat(stats.binom.pmf(numbers, trials, p), firsts)


Family = Callable[[Fraction], Randomizer]
LOCAL_GRAIN = 1000  # local epsilons are tried in thousandths


@dataclass(frozen=True, slots=True, kw_only=True)
class Amplified:
    """The epsilon of n reports of one mechanism behind an independent shuffler.

    It strips pseudonym, slot and timing; n counts honest reporters of one batch, one report each.
    """

    reports: int
    delta: Fraction
    local: Fraction
    closed: Fraction
    clones: Fraction
    blanket: Fraction

    @property
    def epsilon(self) -> Fraction:
        """The best of the three: each holds on its own."""
        return min(self.closed, self.clones, self.blanket)


def amplified(mechanism: Randomizer, reports: int, delta: Fraction) -> Amplified:
    """Return all three bounds."""
    return Amplified(
        reports=reports,
        delta=delta,
        local=mechanism.epsilon,
        closed=shuffle_amplification(mechanism.epsilon, reports, delta),
        clones=clones_epsilon(mechanism.epsilon, reports, delta),
        blanket=blanket_epsilon(mechanism, reports, delta),
    )


def clones_epsilon(epsilon: Fraction, reports: int, delta: Fraction) -> Fraction:
    """Return the epsilon that any epsilon-LDP randomizer has behind a shuffler [FMT21]."""
    ratio = nextafter(float(exp_upper(epsilon)), float("inf"))
    return _least(
        lambda at: clones_delta(ratio, reports, at), epsilon, reports=reports, delta=delta
    )


def blanket_epsilon(mechanism: Randomizer, reports: int, delta: Fraction) -> Fraction:
    """Return the epsilon that this mechanism has behind a shuffler [BBGN19]."""
    pairs = handler_of(mechanism).overlaps()
    return _least(
        lambda at: blanket_delta(pairs, reports, at),
        mechanism.epsilon,
        reports=reports,
        delta=delta,
    )


def _least(
    delta_of: Callable[[float], float], local: Fraction, *, reports: int, delta: Fraction
) -> Fraction:
    """Return the least epsilon, in millionths, whose delta is small enough; at most the local one.

    One report more or less than none has nobody to hide among.
    """
    if reports < 2:  # noqa: PLR2004 - alone
        return local
    steps = range(int(local * EPSILON_GRAIN))
    least = bisect_left(steps, True, key=lambda step: delta_of(step / EPSILON_GRAIN) <= delta)
    return min(Fraction(least, EPSILON_GRAIN), local)


def keeps_epsilon(mechanism: Randomizer, reports: int, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the shuffled batch is (epsilon, delta)-DP, by the clones or by the blanket."""
    if mechanism.epsilon <= epsilon:
        return True
    if reports < 2:  # noqa: PLR2004 - alone
        return False
    at = nextafter(float(epsilon), 0)
    ratio = nextafter(float(exp_upper(mechanism.epsilon)), float("inf"))
    if clones_delta(ratio, reports, at) <= delta:  # the cheaper of the two
        return True
    return blanket_delta(handler_of(mechanism).overlaps(), reports, at) <= delta


def largest_local_epsilon(
    family: Family, reports: int | Callable[[Fraction], int], epsilon: Fraction, delta: Fraction
) -> Fraction:
    """Return a local epsilon that keeps the batch's, such that a thousandth more does not.

    Of so many reports, or of as many as that local epsilon would need: the larger it is, the fewer
    reports, and the worse hidden each. At least the batch's own epsilon: a shuffler never costs.
    """

    def breaks(step: int) -> bool:
        local = Fraction(step, LOCAL_GRAIN)
        needed = reports if isinstance(reports, int) else reports(local)
        return not keeps_epsilon(family(local), needed, epsilon, delta)

    steps = range(int(EPSILON_MAX * LOCAL_GRAIN) + 1)
    first_over = bisect_left(steps, True, lo=int(epsilon * LOCAL_GRAIN) + 1, key=breaks)
    return max(epsilon, Fraction(first_over - 1, LOCAL_GRAIN))
