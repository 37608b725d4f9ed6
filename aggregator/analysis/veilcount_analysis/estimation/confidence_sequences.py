"""Confidence sequences: intervals that hold at every look at growing data.

An interval for one look misses at some look with a probability that goes to 1 as looks add up. A
confidence sequence misses at any of them, ever, with probability at most alpha [Rob70, HRMS21]. A
truth is left out when a nonnegative martingale that starts at 1 if it is true reaches 2 / alpha on
one side [Vil39]. The martingales mix exponential tilts over a fixed grid, so they hold at any n and
need no planned size:

- Shares, means of bounded contributions: exp(tilt sum - n log(1 - m + m e^tilt)), where m is the
  mean so far of what was expected. It may drift, so this holds for a cohort too.
- Shares of a cohort: the exact distribution of the noise of the holders and of the others.
- Mean numbers of a cohort: the worst distribution of the noise over all numbers.
- Mean numbers of a population: prod(1 + bet (x - m)) over the reports, the wealth of a bettor that
  the mean is not m [WR23]; valid for answers that all have the population's mean.

The wealth of two independent sides together is a martingale too: of their difference a pair of
truths is left out where the product reaches 2 / alpha on one side: there one side may have more if
the other has less. This is narrower than two intervals with half the error each, which any
dependence allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count

import numpy as np

from .confidence_intervals import Alpha, Bools, Ends, Floats, distinct, separate
from .estimator import Estimator, IntervalTarget
from .fieller import RatioEstimator
from .proportions import CellSums, GroupSums, SupportCounts

STEPS = 32  # of a bisection: to 1e-9 of the way
TILTS = 6.0 * 1.4 ** -np.arange(27.0)  # for contributions in [0, 1]: from a few to 10^7 reports
LEAST = -float(np.log(len(TILTS) + 1))  # of a log wealth
BOLDEST = 0.9  # the largest part of a bet that may be lost


class LookCount(StrEnum):
    """At how many looks at growing data an interval holds."""

    ONE = "one"
    EVERY = "every"

    @property
    def valid(self) -> str:
        """The validity of an interval, in words."""
        return "valid at one planned look" if self is LookCount.ONE else "valid at every look"


@dataclass(frozen=True, slots=True, eq=False)
class AnytimeEstimator:
    """Evidence whose intervals are those of a confidence sequence.

    `single`: an end is where the wealth of one martingale reaches its bound.
    """

    fixed: Estimator
    ends: Callable[[Alpha, IntervalTarget], Ends]
    single: bool = True

    @property
    def n(self) -> int:
        return self.fixed.n

    @property
    def points(self) -> Floats:
        return self.fixed.points

    @property
    def families(self) -> int:
        return self.fixed.families

    def error(self, target: IntervalTarget) -> Floats:
        return self.fixed.error(target)

    def interval(self, alpha: Alpha, target: IntervalTarget) -> Ends:
        """Return the intervals, each of which ever misses with probability alpha at most."""
        low, high = self.ends(alpha, target)
        return np.minimum(low, self.points), np.maximum(high, self.points)

    def few(self, _alpha: Alpha, _target: IntervalTarget) -> Bools:
        """Return true: no normal approximation serves at every n."""
        return np.ones(len(self.points), np.bool_)

    def poisoned(self, fakes: float) -> Ends:
        return self.fixed.poisoned(fakes)


def anytime(evidence: Estimator) -> AnytimeEstimator:
    """Return evidence with intervals that hold at every look."""
    match evidence:
        case AnytimeEstimator():
            return evidence
        case SupportCounts():
            return AnytimeEstimator(
                evidence, lambda alpha, target: _support_ends(evidence, alpha, target)
            )
        case GroupSums():
            estimators = [anytime(group) for group in evidence.groups]
            return AnytimeEstimator(
                evidence, lambda alpha, target: _joined_ends(estimators, alpha, target)
            )
        case CellSums():
            return AnytimeEstimator(evidence, lambda alpha, _target: _cell_ends(evidence, alpha))
        case RatioEstimator():
            parts = replace(evidence, parts=anytime(evidence.parts), whole=anytime(evidence.whole))
            return AnytimeEstimator(evidence, parts.quotient, single=False)
    raise TypeError(f"{type(evidence).__name__} has no intervals that hold at every look")


def _support_ends(evidence: SupportCounts, alpha: Alpha, target: IntervalTarget) -> Ends:
    counts, alpha, places = distinct(evidence.counts, alpha)
    response, n = evidence.response, evidence.n
    if target is IntervalTarget.COHORT and response.binary:
        ends = _cohort_ends(counts.astype(np.float64), n, response.P, response.Q, alpha)
    else:
        reach = (np.array(float(response.least)), np.array(float(response.most)))
        low, high = _bounded_ends(counts / n, n, reach, alpha)
        ends = response.share(low), response.share(high)
    return ends[0][places], ends[1][places]


def _cell_ends(evidence: CellSums, alpha: Alpha) -> Ends:
    reach = (evidence.least, evidence.most)
    ends = _bounded_ends(evidence.means, evidence.n, reach, alpha)
    low, high = (evidence.share(end) for end in ends)
    return low, high


def _joined_ends(estimators: list[AnytimeEstimator], alpha: Alpha, target: IntervalTarget) -> Ends:
    alphas = zip(estimators, separate(alpha, len(estimators)), strict=True)
    low, high = zip(*(one.interval(own, target) for one, own in alphas), strict=True)
    return np.concatenate(low), np.concatenate(high)


# -- ends: where the martingale of a side reaches its bound ----------------------------------------


Wealth = Callable[[Floats], Floats]


def crossing(wealth: Wealth, inside: Floats, outside: Floats, bound: Alpha) -> Floats:
    """Return the last truth from `inside` towards `outside` whose log wealth is below the bound.

    It grows on the way; what is returned is never on the near side of the true end.
    """
    near, far = np.broadcast_arrays(inside, outside)
    near, far = near.astype(np.float64), far.astype(np.float64)
    for _ in range(STEPS):
        middle = (near + far) / 2
        below = wealth(middle) < bound
        near, far = np.where(below, middle, near), np.where(below, far, middle)
    return far


def mixed(exponents: Floats) -> Floats:
    """Return the log of the average over the tilts, which are the last axis, and no tilt at all.

    The last keeps the wealth above LEAST, whatever comes.
    """
    most = np.maximum(exponents.max(axis=-1), 0.0)
    total = np.exp(exponents - most[..., None]).sum(axis=-1) + np.exp(-most)
    log_mixture: Floats = most + np.log(total) + LEAST
    return log_mixture


def _bounded_ends(means: Floats, n: int, reach: tuple[Floats, Floats], alpha: Alpha) -> Ends:
    """Return the ends for the mean of n contributions within the reach."""
    least, most = reach
    width = np.maximum(most - least, 1e-300)
    scaled = np.clip((means - least) / width, 0.0, 1.0)
    bound = np.log(2 / np.asarray(alpha))

    def wealth(sign: float) -> Wealth:
        tilts = sign * TILTS
        gained = n * scaled[..., None] * tilts
        return lambda m: mixed(gained - n * np.log1p(m[..., None] * np.expm1(tilts)))

    low = crossing(wealth(1.0), scaled, np.zeros_like(scaled), bound)
    high = crossing(wealth(-1.0), scaled, np.ones_like(scaled), bound)
    return least + width * low, least + width * high


def _cohort_ends(counts: Floats, n: int, P: float, Q: float, alpha: Alpha) -> Ends:
    """Return the ends for a cohort's share of holders, who count with P, the others with Q."""
    bound = np.log(2 / np.asarray(alpha))
    share = np.clip((counts / n - Q) / (P - Q), 0.0, 1.0)

    def wealth(sign: float) -> Wealth:
        tilts = sign * TILTS
        holders, others = (np.log1p(chance * np.expm1(tilts)) for chance in (P, Q))
        gained = counts[:, None] * tilts - n * others
        return lambda f: mixed(gained - n * f[:, None] * (holders - others))

    low = crossing(wealth(1.0), share, np.zeros_like(share), bound)
    high = crossing(wealth(-1.0), share, np.ones_like(share), bound)
    return low, high


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
