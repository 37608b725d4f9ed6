"""The mean of a number with intervals that hold at every look: see `confidence_sequences`."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from veilcount_shared.domain import Number
from veilcount_shared.mechanisms import MeanMechanism

from .confidence_intervals import Counts, Ends, Floats
from .confidence_sequences import BOLDEST, TILTS, AnytimeEstimator, Wealth, crossing, mixed
from .estimator import IntervalTarget
from .mean import DecodedMean
from .mean_levels import decoded_levels, transition_matrix


def anytime_mean(mechanism: MeanMechanism, domain: Number, counters: Counts) -> AnytimeEstimator:
    """Return the evidence on the mean of a number."""

    def ends(alpha: float, target: IntervalTarget) -> Ends:
        bound = float(np.log(2 / alpha))
        found = _population_ends if target.sampled else _cohort_ends
        low, high = found(mechanism, counters, bound)
        start, width = float(domain.low), float(domain.high - domain.low)
        return start + width * low, start + width * high

    return AnytimeEstimator(DecodedMean.from_counters(mechanism, domain, counters), ends)


def _cohort_ends(mechanism: MeanMechanism, counters: Counts, bound: float) -> Ends:
    """Return the ends for the mean of these numbers: whatever they are."""
    n, levels = int(counters.sum()), decoded_levels(mechanism)
    mean = np.array([float(counters @ levels) / n])
    width = float(np.ptp(levels))

    def wealth(sign: float) -> Wealth:
        tilts = sign * TILTS / width
        noise = worst_noise(mechanism, sign)
        return lambda m: mixed(n * ((mean - m)[:, None] * tilts - noise))

    low = crossing(wealth(1.0), mean, mean - width, bound)
    high = crossing(wealth(-1.0), mean, mean + width, bound)
    return low, high


def _population_ends(mechanism: MeanMechanism, counters: Counts, bound: float) -> Ends:
    n, levels = int(counters.sum()), decoded_levels(mechanism)
    width = float(np.ptp(levels))
    scaled = (levels - levels.min()) / width
    mean = np.array([float(counters @ scaled) / n])

    def wealth(levels: Floats) -> Wealth:
        return lambda m: _bet(levels, counters, m)

    low = crossing(wealth(scaled), mean, np.zeros(1), bound)
    high = 1 - crossing(wealth(1 - scaled), 1 - mean, np.zeros(1), bound)
    return levels.min() + width * low, levels.min() + width * high


def _bet(levels: Floats, counters: Counts, m: Floats) -> Floats:
    """Return the log of the wealth of bets that the mean of the decoded levels is above m."""
    bets = np.minimum(TILTS, BOLDEST / np.maximum(m[:, None], 1e-300))
    gained = np.log1p(bets[..., None] * (levels - m[:, None, None]))
    return mixed(gained @ counters.astype(np.float64))


@lru_cache(maxsize=512)
def worst_noise(mechanism: MeanMechanism, sign: float) -> Floats:
    """Return the most that log E exp(tilt (level - number)) is for any number, tilt by tilt.

    Between two starts the expectation is linear in the number, so that its log less tilt times the
    number is concave: its top is where the slope is 0, if that lies between them, else at an end.
    """
    levels = decoded_levels(mechanism)
    rows = transition_matrix(mechanism)
    tilts = sign * TILTS / float(np.ptp(levels))
    starts = rows @ levels
    expected = np.exp(np.outer(tilts, levels)) @ rows.T
    slope = np.diff(expected) / np.diff(starts)
    with np.errstate(divide="ignore", invalid="ignore"):
        top = starts[:-1] + 1 / tilts[:, None] - expected[:, :-1] / slope
    tops = np.clip(np.nan_to_num(top, posinf=2.0, neginf=-1.0), starts[:-1], starts[1:])
    at = expected[:, :-1] + slope * (tops - starts[:-1])
    inside = np.log(at) - tilts[:, None] * tops
    ends = np.log(expected) - np.outer(tilts, starts)
    worst: Floats = np.maximum(inside.max(axis=1), ends.max(axis=1))
    return worst
