"""A state over time, by a trend of 24 periods; and the variance of a number, by its moments."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from veilcount_analysis.estimation.moments import variances
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.mechanisms.moments import moments_handler
from veilcount_shared import Collection, parse_collections
from veilcount_shared.collection import Measure
from veilcount_shared.domain import GRID, Features, Number

from .definitions import ask
from .measured_figures import Measured, intervals

TREND = """
app = "bench"
[bench]
question = "Is it on?"
boolean = true
measure = "trend"
changes = 1
epsilon = 1
unit = "month"
from = 2026-01-01
until = 2028-01-01
"""
LEVEL = 0.95
PEOPLE = (3_000, 10_000, 100_000)
ROUNDS_A_CAMPAIGN = 10  # of 24 periods, whose errors hang together
MOMENTS_EPSILON, SIZES = 2, (5_000, 50_000, 500_000)
ROUNDS_A_POPULATION = 5  # of which half a million are drawn


def trend_shares(rounds: int) -> Iterator[Measured]:
    """Estimate the share after each period, of people who change at a random time or never."""
    kind = kind_of(parse_collections(TREND, lambda _: [])["bench"])
    for n in PEOPLE:
        generator = np.random.default_rng(n)
        rows = [
            row
            for _ in range(rounds // ROUNDS_A_CAMPAIGN)
            for row in kind.simulate({"n": [str(n)]}, generator).facts["periods"]
        ]
        truth = np.array([row["truth"] for row in rows])
        points, low, high = (
            np.array([row["local"][name] for row in rows]) for name in ("value", "low", "high")
        )
        yield intervals("share in a trend, 24 periods", n, points, (low, high), truth)


def moment_variances(rounds: int) -> Iterator[Measured]:
    """Estimate the variance of two numbers that are spread evenly over their ranges."""
    handler = moments_handler(_numbers())
    for n in SIZES:
        generator, figures = np.random.default_rng(n), []
        for _ in range(rounds // ROUNDS_A_POPULATION):
            points = generator.integers(GRID, size=(n, 2), endpoint=True)
            messages = handler.draw_messages(handler.draw_moments(points, generator), generator)
            counters = np.bincount(messages, minlength=handler.mechanism.counters)
            figures.append(handler.means(counters).figures(variances, LEVEL))
        values, low, high = (
            np.array([getattr(figure, name) for figure in figures])
            for name in ("points", "low", "high")
        )
        yield intervals("variance of a number", n, values, (low, high), 1 / 3)


def _numbers() -> Collection:
    both = Number(Fraction(-1), Fraction(1))
    domain = Features((("one", both), ("two", both)))
    return ask(domain, MOMENTS_EPSILON, measure=Measure.MOMENTS)
