"""The weights of a trend's intervals in its least-squares shares.

Each interval of each level has reports of its own people, and estimates the net change of the share
within it. The share after a period is the sum of the changes of all periods before, estimated by
least squares from all intervals, each weighted alike: levels are drawn uniformly, so intervals have
about equally many reports. Weights by the numbers of reports would have the same error, and fakes
could move them.

The weights of a share are those with the smallest sum of squares among those that add up, over the
intervals that hold a period, to 1 for each period counted and to 0 for each later one. Intervals
are nodes of binary trees, and in a tree the smallest sum is a quadratic function of what the
intervals above add up to. So it is computed from the leaves up, and the weights from the root down
[least squares in a tree: Hay et al. 2010], in time linear in the number of periods.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from .confidence_intervals import Bools, Counts, Floats

MISSING = 1e12  # the price of a weight on a period without reports; a report's is 1
BLOCK = 32  # shares whose weights are computed together
ROUNDING = 1e-9  # a weight below is 0


@lru_cache(maxsize=64)
def interval_levels(periods: int) -> Counts:
    """Return the level of each interval, in the order of all weights: the shortest first."""
    levels = range(periods.bit_length())
    return np.repeat(levels, [periods >> level for level in levels])


def share_weights(periods: int, period: int, reported: bytes) -> Floats | None:
    """Return the weight of each interval in the share after `period` of the periods.

    `reported` has a byte for each interval, 1 where it has reports: any other has no weight. None:
    no weights are unbiased then.
    """
    block, row = divmod(period - 1, BLOCK)
    weights: Floats = _block(periods, block, reported)[row]
    return None if np.isnan(weights[0]) else weights


@lru_cache(maxsize=16)
def _block(periods: int, block: int, reported: bytes) -> Floats:
    """Return the weights in the shares of successive periods; NaN where they would be biased."""
    has_reports = np.frombuffer(reported, np.bool_)
    shares = np.arange(block * BLOCK, min((block + 1) * BLOCK, periods)) + 1
    weights = _least_squares(periods, shares, has_reports)
    weights[np.abs(weights) < ROUNDING] = 0.0
    weights[weights[:, ~has_reports].any(axis=1)] = np.nan
    weights.flags.writeable = False
    return weights


def _least_squares(periods: int, shares: Counts, has_reports: Bools) -> Floats:
    """Return a row of weights for each share; on a missing period what cannot be avoided.

    The trees are one with leaves after the last period, which cost nothing. Over a node's leaves
    the least sum of squares is stiffness (s - target)^2, and a constant, if the weights above add
    up to s; of the distance its own weight takes the part `own`.
    """
    sizes = [periods >> level for level in range(periods.bit_length())]
    reports = np.split(has_reports, np.cumsum(sizes)[:-1])
    target = (np.arange(1 << len(sizes)) < shares[:, np.newaxis]).astype(np.float64)
    stiffness = np.zeros(1 << len(sizes))
    stiffness[:periods] = np.where(reports[0], 1.0, MISSING)
    nodes = [(np.ones_like(stiffness), target)]
    for has_own in reports[1:]:
        pulls = stiffness * target
        stiffness = stiffness[::2] + stiffness[1::2]
        target = (pulls[:, ::2] + pulls[:, 1::2]) / np.maximum(stiffness, 1 / MISSING)
        own, part = np.zeros_like(stiffness), stiffness / (1 + stiffness)
        own[: len(has_own)] = np.where(has_own, part[: len(has_own)], 0.0)
        stiffness = np.where(own > 0, own, stiffness)
        nodes.append((own, target))
    above, weights = np.zeros((len(shares), 1)), []
    for size, (own, target) in zip(reversed(sizes), reversed(nodes), strict=True):
        above = np.repeat(above, 2, axis=1)
        weight = own * (target - above)
        above = above + weight
        weights.append(weight[:, :size])
    return np.concatenate(weights[::-1], axis=1)


def least_variances(periods: int) -> Floats:
    """Return the sum of squared weights in the share after each period, if nothing is missing."""
    return _of_trees(periods, _squares)


def largest_influence(periods: int) -> float:
    """Return the most that a device adds to a share which is right in each interval that it counts.

    It is that of a device of the shortest intervals.
    """
    return float(_of_trees(periods, _shortest).max())


def _of_trees(periods: int, figure: Callable[[int, Counts], Floats]) -> Floats:
    """Return the sum of a figure of each complete tree, of which the first periods are counted."""
    first, total = 0, np.zeros(periods)
    for level in reversed(range(periods.bit_length())):
        if periods >> level & 1:
            counted = np.clip(np.arange(1, periods + 1) - first, 0, 1 << level)
            total += figure(level, counted)
            first += 1 << level
    return total


def _squares(level: int, counted: Counts) -> Floats:
    """Return the least sum of squares: of the two halves only one has both kinds of periods."""
    total: Floats = _stiffness(level) * (counted / (1 << level)) ** 2
    for below in reversed(range(level)):
        half = 1 << below
        apart = np.minimum(counted, 2 * half - counted) / half  # between the targets of the halves
        total += _stiffness(below) / 2 * apart**2
        counted = np.where(counted > half, counted - half, counted)
    return total


def _shortest(level: int, counted: Counts) -> Floats:
    """Return the sum of the absolute weights of single periods.

    Of a tree with one kind of period it is its stiffness times its distance from the target.
    """
    total, above = np.zeros(len(counted)), np.zeros(len(counted))
    for below in reversed(range(level)):
        half = 1 << below
        above = above + _stiffness(below + 1) * (counted / (2 * half) - above)
        is_second = counted > half
        total += _stiffness(below) * np.abs(is_second - above)
        counted = np.where(is_second, counted - half, counted)
    leaves: Floats = total + np.abs(counted - above)
    return leaves


def _stiffness(level: int) -> float:
    """Return that of a complete tree of 2^level periods, its root's own weight included."""
    return (1 << level) / ((2 << level) - 1)
