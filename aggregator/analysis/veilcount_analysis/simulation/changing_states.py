"""States that change over time: a known population, and what its trend's reports estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.mechanisms import TrendMechanism
from veilcount_shared.schedule import period_end, period_start

from ..estimation.estimator import IntervalTarget
from ..estimation.trend import TrendCounts
from ..mechanisms.sampling import Ints
from ..mechanisms.trend import trend_handler
from .simulated_figures import (
    DrawnDevices,
    SimulatedEstimate,
    SimulatedFigures,
    SimulationQuery,
    Top,
    covered,
    truth_table,
)

CELLS = 1 << 21  # people and periods that are drawn together


@dataclass(frozen=True, kw_only=True)
class TrendSimulation(SimulationQuery):
    """How many periods are shown."""

    subject: ClassVar[str] = "states over time"
    refused: ClassVar[Mapping[str, str]] = {
        "truth": "states change at random times, half of them never: remove it"
    }

    n: DrawnDevices
    top: Top = 20


def simulate_trend(
    collection: Collection, query: TrendSimulation, generator: Generator
) -> SimulatedFigures:
    """Let people change at random times, and estimate the share after each period."""
    handler = trend_handler(collection)
    trend = handler.mechanism
    counters = np.zeros((trend.periods, trend.counters), np.int64)
    true = np.zeros(trend.periods, np.int64)
    for people in _groups(query.n, trend.periods):
        states = draw_states(trend, people, generator)
        counters += draw_trend_counters(trend, states, generator)
        true += states.sum(axis=0)
    counts = handler.counts(counters)
    figures = [_figures(counts, period, query.level) for period in range(1, trend.periods + 1)]
    local = SimulatedEstimate(*np.array(figures).T)
    rows = [
        {
            "from": period_start(collection, period).date().isoformat(),
            "to": (period_end(collection, period).date() - timedelta(days=1)).isoformat(),
            "truth": share,
            "local": local.at(period),
        }
        for period, share in enumerate((true / query.n).tolist())
    ]
    true_intervals, stated = covered(rows)
    closing = [f"the truth is in {true_intervals} of {stated} intervals, of {len(rows)} periods"]
    if len(rows) > query.top:
        closing.append(f"the first {query.top} are shown (--top)")
    return SimulatedFigures(
        n=query.n,
        level=query.level,
        facts={"periods": rows},
        table=truth_table(rows[: query.top], ("from", "to"), missing="no reports"),
        closing=closing,
        target=IntervalTarget.POPULATION,
    )


def _groups(n: int, periods: int) -> Iterator[int]:
    size = max(1, CELLS // periods)
    for begin in range(0, n, size):
        yield min(size, n - begin)


def _figures(counts: TrendCounts, period: int, level: float) -> tuple[float, float, float]:
    estimator = counts.after(period)
    if estimator is None:
        return float("nan"), float("nan"), float("nan")
    low, high = estimator.interval(1 - level, IntervalTarget.POPULATION)
    return float(estimator.points[1]), float(low[1]), float(high[1])


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
