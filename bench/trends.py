"""A state over time: the error of its share, by a trend and by one answer in all periods."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.mechanisms.trend import TrendHandler
from veilcount_analysis.simulation.changing_states import draw_states, draw_trend_counters
from veilcount_shared import select_mechanism
from veilcount_shared.mechanisms import TrendMechanism

from .table import Row, Table

PEOPLE = 5_000
EPSILON = Fraction(1)
#: periods, and changes
SETTINGS = ((12, 1), (12, 3), (52, 1), (52, 3), (365, 1), (365, 3))
CAMPAIGNS, FEW = 400, 150  # the errors of one campaign's periods hang together
TOLERANCE = 0.10  # of the formula

NOTES = (
    f"Epsilon {EPSILON} for the whole campaign. n Var: of the share of true, averaged over the",
    f"  periods, from campaigns of {PEOPLE:,} simulated persons. One answer: answers = 1, the raw",
    "  figure of each period. Points: the standard error of a share at n = 1,000,000.",
)


def run(*, quick: bool) -> Table:
    """Measure the variance in each setting."""
    rows = [_row(periods, changes, FEW if quick else CAMPAIGNS) for periods, changes in SETTINGS]
    return Table("trends: one state over time", rows, NOTES)


def _row(periods: int, changes: int, campaigns: int) -> Row:
    trend = TrendMechanism.for_epsilon(EPSILON, periods, changes)
    generator = np.random.default_rng(periods + changes)
    squares = [np.square(_errors(trend, generator)).mean() for _ in range(campaigns)]
    found, formula = float(np.mean(squares)) * PEOPLE, handler_of(trend).noise_variance()
    alone = periods * one_answer()
    return {
        "periods": periods,
        "changes": changes,
        "n Var": found,
        "formula": formula,
        "one answer": alone,
        "better": "trend" if formula < alone else "answers = 1",
        "points at 1e6": 100 * sqrt(min(formula, alone) / 1e6),
        "target": f"within {TOLERANCE:.0%} of the formula",
        "met": abs(found / formula - 1) <= TOLERANCE,
    }


def one_answer() -> float:
    """Return n times the variance of a share near one half, the sampling of persons included."""
    mechanism = select_mechanism(2, EPSILON).mechanism
    return handler_of(mechanism).noise_variance() + 1 / 4


def _errors(trend: TrendMechanism, generator: Generator) -> NDArray[np.float64]:
    """Return the error of the share after each period of one campaign."""
    states = draw_states(trend, PEOPLE, generator)
    counters = draw_trend_counters(trend, states, generator)
    counts = TrendHandler(trend).counts(counters)
    estimators = [counts.after(period) for period in range(1, trend.periods + 1)]
    shares = [estimator.points[1] for estimator in estimators if estimator]
    errors: NDArray[np.float64] = np.array(shares) - states.mean(axis=0)
    return errors
