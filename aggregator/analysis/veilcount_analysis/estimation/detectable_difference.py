"""The smallest difference that a comparison would have detected in four of five.

Of shares it is worked out at the counts that are expected: a value's share among all, moved apart
in either direction until the near end of the interval is as far from 0 as the power asks for.
The test is the interval's own, so what is promised is what is found.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from .confidence_intervals import Alpha, Counts, Ends, Floats, quantile, score
from .confidence_sequences import LookCount
from .estimate_pair import EstimatePair
from .estimator import IntervalTarget
from .proportions import SupportCounts
from .roots import last_positive

POWER_QUANTILE = 0.8416212335729143  # the normal's at POWER


def detectable(pair: EstimatePair, alpha: float) -> Floats:
    """Return each figure's, by a test at this error probability; infinite: no share has it."""
    one, two = pair.one, pair.two
    if isinstance(one, SupportCounts) and isinstance(two, SupportCounts):
        return _of_shares(pair, one, two, alpha)
    low, high = pair.interval(alpha)
    difference = pair.difference
    if pair.looks is LookCount.ONE:
        half = np.maximum(difference - low, high - difference)
    else:
        half = (high - low) / 2
    return half + POWER_QUANTILE * pair.error


def _of_shares(pair: EstimatePair, one: SupportCounts, two: SupportCounts, alpha: float) -> Floats:
    n = one.n + two.n
    common = np.clip((one.n * one.points + two.n * two.points) / n, 0.0, 1.0)
    signs = np.repeat([1.0, -1.0], len(common))
    middle = np.tile(common, 2)
    rho = None if pair.correlation is None else np.tile(pair.correlation, 2)
    both = replace(pair, correlation=rho)

    def lacking(size: Floats) -> Floats:
        """Return how much nearer to 0 the interval's near end lies than it must."""
        least, most = np.maximum(signs * size, 0.0), 1 + np.minimum(signs * size, 0.0)
        first = np.clip(middle + signs * size * two.n / n, least, most)
        second = first - signs * size
        low_one, high_one = _expected(one, first, alpha, pair.target)
        low_two, high_two = _expected(two, second, alpha, pair.target)
        near = both.joined(
            np.where(signs > 0, first - low_one, high_one - first),
            np.where(signs > 0, high_two - second, second - low_two),
        )
        error = both.joined(_error(one, first, pair.target), _error(two, second, pair.target))
        lack: Floats = near + POWER_QUANTILE * error - size
        return lack

    zero, whole = np.zeros_like(middle), np.ones_like(middle)
    values = lacking(zero), lacking(whole)
    never = values[1] > 0
    size = last_positive(lacking, zero, np.where(never, zero, whole), values)
    larger: Floats = np.where(never, np.inf, size).reshape(2, -1).max(axis=0)
    return larger


def _error(evidence: SupportCounts, shares: Floats, target: IntervalTarget) -> Floats:
    return np.sqrt(evidence.noise.variance(shares, sampled=target.sampled) / evidence.n)


def _expected(
    evidence: SupportCounts, shares: Floats, alpha: Alpha, target: IntervalTarget
) -> Ends:
    """Return the ends at the counts expected of these shares.

    Exact ends of a cohort, or among covers, take seconds: there the normal's are taken.
    """
    if target.sampled and type(evidence) is SupportCounts:
        counts = evidence.n * (evidence.response.Q + evidence.response.gap * shares)
        expected = cast("Counts", counts)  # fractions, which no exact interval minds
        return replace(evidence, counts=expected).interval(alpha, target)
    z, sampled = quantile(alpha), target.sampled
    return score(shares, evidence.n, evidence.noise, z, sampled=sampled)
