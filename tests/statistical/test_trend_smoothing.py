"""A smoothed trend errs less than least squares, and its bands hold over all periods together.

100 campaigns of 24 periods and 3,000 people at epsilon 1. The quotient of the errors has a standard
deviation of about .02 over the campaigns, the mean coverage one of .008: each bound is three or
more away from what is expected, so a right smoother misses one with a probability below .002; the
seed is fixed.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from veilcount_analysis.estimation.confidence_intervals import Bools, Counts, Floats, quantile
from veilcount_analysis.estimation.estimator import IntervalTarget
from veilcount_analysis.estimation.trend import SmoothWeights
from veilcount_analysis.mechanisms.trend import TrendHandler
from veilcount_analysis.simulation.changing_states import draw_trend_counters
from veilcount_shared.mechanisms import TrendMechanism

PEOPLE, PERIODS, CAMPAIGNS = 3_000, 24, 100
NEVER = 10 * PERIODS


class Errors(NamedTuple):
    """Of each campaign and period."""

    raw: Floats
    smooth: Floats
    stated: Floats

    def covered(self, part: float = 1.0) -> Bools:
        """Where bands of a part of the stated width hold the truth."""
        inside: Bools = np.abs(self.smooth) <= quantile(0.05) * part * self.stated
        return inside


def slow(generator: np.random.Generator) -> Counts:
    """When each person changes: at any time, or never."""
    return generator.integers(0, PERIODS * 3 // 2, PEOPLE)


def early(generator: np.random.Generator) -> Counts:
    """Six of ten in the first two periods, the others never."""
    return np.where(generator.random(PEOPLE) < 0.6, generator.integers(0, 2, PEOPLE), NEVER)


def errors(times: Counts, trend: TrendMechanism, generator: np.random.Generator) -> Floats:
    """Those of raw shares, those of smoothed ones, and what the latter state; a row each."""
    states = (np.arange(PERIODS) >= times[:, np.newaxis]).astype(np.int64)
    counts = TrendHandler(trend).counts(draw_trend_counters(trend, states, generator))
    rows = []
    for period, truth in enumerate(states.mean(axis=0), start=1):
        raw, smooth = counts.after(period), counts.smoothed_after(period)
        assert raw is not None
        stated = smooth.error(IntervalTarget.POPULATION)[1]
        rows.append((raw.points[1] - truth, smooth.points[1] - truth, stated))
    return np.array(rows, np.float64).T


@pytest.fixture(scope="module")
def measured() -> dict[str, Errors]:
    trend = TrendMechanism.for_epsilon(Fraction(1), PERIODS, 1)
    courses = {}
    for course in (slow, early):
        generator = np.random.default_rng(2)
        rows = [errors(course(generator), trend, generator) for _ in range(CAMPAIGNS)]
        courses[course.__name__] = Errors(*np.stack(rows, axis=1))
    return courses


def test_smoothed_shares_err_less_than_raw_ones(measured: dict[str, Errors]) -> None:
    rose = measured["slow"]

    assert np.sqrt(np.mean(rose.smooth**2) / np.mean(rose.raw**2)) < 0.92


def test_bands_hold_over_all_periods_together(measured: dict[str, Errors]) -> None:
    """Planted: bands of two thirds of the width."""
    rose = measured["slow"]

    assert rose.covered().mean() > 0.92
    assert rose.covered(2 / 3).mean() < 0.85


def test_bands_do_not_hold_in_the_period_of_a_sudden_change(measured: dict[str, Errors]) -> None:
    """What the sentence with the bands is about: about three in five hold the first share."""
    rose = measured["early"]

    assert rose.covered().mean() > 0.9
    assert 0.4 < rose.covered()[:, 0].mean() < 0.8


def test_shares_that_are_known_well_are_those_of_least_squares() -> None:
    """Two intervals of one period and one of both."""
    smooth = SmoothWeights.fit(2, np.array([0.5, 0.5, 1.0]), 1e-9, np.ones(3, np.bool_))

    assert smooth.weights[1] == pytest.approx([1 / 3, 1 / 3, 2 / 3], abs=1e-3)
