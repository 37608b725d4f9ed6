"""States that change over time: a known population, and what its trend's reports estimate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.mechanisms import TrendMechanism

from ..estimation.estimator import IntervalTarget
from ..mechanisms.sampling import Floats, Ints
from ..mechanisms.trend import TrendHandler, trend_handler
from .local_vs_central import SimulatedEstimate

CELLS = 1 << 21  # people and periods that are drawn together


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedTrend:
    """The true share after each period, and its estimate; NaN: an interval has no reports."""

    truth: Floats
    local: SimulatedEstimate


def simulate_trend(
    collection: Collection, n: int, generator: Generator, level: float = 0.95
) -> SimulatedTrend:
    """Let n people change at random times, and estimate the share after each period."""
    handler = trend_handler(collection)
    trend = handler.mechanism
    counters = np.zeros((trend.periods, trend.counters), np.int64)
    true = np.zeros(trend.periods, np.int64)
    for people in _groups(n, trend.periods):
        states = draw_states(trend, people, generator)
        counters += draw_trend_counters(trend, states, generator)
        true += states.sum(axis=0)
    figures = np.array([_figures(handler, period, counters, level) for period in range(len(true))])
    return SimulatedTrend(true / n, SimulatedEstimate(*figures.T))


def _groups(n: int, periods: int) -> Iterator[int]:
    size = max(1, CELLS // periods)
    for begin in range(0, n, size):
        yield min(size, n - begin)


def _figures(
    handler: TrendHandler, period: int, counters: Ints, level: float
) -> tuple[float, float, float]:
    found = handler.evidence(period, counters.__getitem__)
    if found is None:
        return float("nan"), float("nan"), float("nan")
    low, high = found.interval(1 - level, IntervalTarget.POPULATION)
    return float(found.points[1]), float(low[1]), float(high[1])


def draw_states(trend: TrendMechanism, people: int, generator: Generator) -> Ints:
    """Return 0 or 1 for each person and period: changes at random times, half of them never."""
    times = generator.integers(0, 2 * trend.periods, (people, trend.changes))
    flips = np.zeros((people, 2 * trend.periods), np.int64)
    for one in times.T:
        flips[np.arange(people), one] ^= 1
    states: Ints = flips[:, : trend.periods].cumsum(axis=1) % 2
    return states


def draw_trend_counters(trend: TrendMechanism, states: Ints, generator: Generator) -> Ints:
    """Return the counters of each period, from one report of each person and interval."""
    levels = generator.integers(trend.levels, size=len(states))
    counters = np.zeros((trend.periods, trend.counters), np.int64)
    for level in range(trend.levels):
        sent = _signs(trend, states[levels == level], level, generator)
        ends = np.arange((1 << level) - 1, trend.periods, 1 << level)
        rises = (sent > 0).sum(axis=0)
        counters[ends, 2 * level] = len(sent) - rises
        counters[ends, 2 * level + 1] = rises
    return counters


def _signs(trend: TrendMechanism, states: Ints, level: int, generator: Generator) -> Ints:
    """Return what the people of a level send, drawn apart from the device's code."""
    people, changes = len(states), trend.changes
    change = np.diff(states[:, (1 << level) - 1 :: 1 << level], axis=1, prepend=0)
    signs = generator.choice((-1, 1), (people, changes))
    majority = np.where(generator.random(people) < float(trend.P), 1, -1)
    signs *= (majority * np.sign(signs.sum(axis=1)))[:, None]
    used = np.clip((change != 0).cumsum(axis=1) - 1, 0, changes - 1)
    fair = generator.choice((-1, 1), change.shape)
    sent: Ints = np.where(change != 0, change * np.take_along_axis(signs, used, axis=1), fair)
    return sent
