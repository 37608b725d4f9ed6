"""The bands of smoothed figures cover, whatever the true figures do over time.

Each case draws many courses and estimates of them; a band of 95 % may miss a few more than one in
twenty, since how far a level moves is estimated: at least 93.5 % are asked for. The standard error
of the share that is covered is below .006 (200 courses, five independent stretches each), so that
bands that cover 95 % fail with a probability below 1 %; the seed is fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, pi
from unittest.mock import patch

import numpy as np
import pytest

from veilcount_analysis.estimation import smoothing
from veilcount_analysis.estimation.confidence_intervals import Floats, quantile
from veilcount_analysis.estimation.smoothing import FEWEST_WEEKLY, Smoother

COURSES = 200
COVERED = 0.935
REACH = quantile(0.05)

Course = Callable[[np.random.Generator, int, float], Floats]


def still(_: np.random.Generator, times: int, __: float) -> Floats:
    return np.zeros((COURSES, times))


def walk(generator: np.random.Generator, times: int, size: float) -> Floats:
    return np.cumsum(generator.normal(0, size, (COURSES, times)), axis=1)


def slope(_: np.random.Generator, times: int, size: float) -> Floats:
    line: Floats = np.linspace(0.0, 4 * size, times, dtype=np.float64)
    return np.tile(line, (COURSES, 1))


def season(generator: np.random.Generator, times: int, size: float) -> Floats:
    """One cycle in the whole time."""
    phase: Floats = np.arange(times) / times + generator.random((COURSES, 1))
    return size * np.sin(2 * pi * phase)


def jumps(generator: np.random.Generator, times: int, size: float) -> Floats:
    """Three, each up or down."""
    at, way = (
        generator.integers(0, times, (3, COURSES, 1)),
        generator.choice([-1, 1], (3, COURSES, 1)),
    )
    every: Floats = (size * way * (np.arange(times) >= at)).sum(axis=0)
    return every


def weekends(generator: np.random.Generator, times: int, size: float) -> Floats:
    days = np.arange(times) + generator.integers(0, 7, (COURSES, 1))
    return np.where(days % 7 >= 5, size, 0.0)


def covered(course: Course, times: int, size: float, *, weekly: bool) -> tuple[float, float]:
    """Return the share of true figures that are covered, and the width of a band, 1 being raw."""
    generator = np.random.default_rng(times)
    true = 10 + course(generator, times, size)
    errors = generator.uniform(0.7, 1.4, true.shape)  # not the same number of reports each time
    estimates = true + errors * generator.normal(0, 1, true.shape)
    figures, deviations = Smoother.fit(estimates, errors, weekly=weekly).smooth(estimates)
    inside = np.abs(figures - true) <= REACH * deviations
    return float(inside.mean()), float((deviations / errors).mean())


@pytest.mark.parametrize("size", [0.5, 1.5, 5.0])
@pytest.mark.parametrize("times", [12, 52])
@pytest.mark.parametrize("course", [still, walk, slope, season, jumps])
def test_bands_cover_whatever_the_course(course: Course, times: int, size: float) -> None:
    share, width = covered(course, times, size, weekly=False)

    assert share >= COVERED
    assert width < 1.01  # never wider than raw


@pytest.mark.parametrize("times", [FEWEST_WEEKLY, pytest.param(365, marks=pytest.mark.full)])
@pytest.mark.parametrize("course", [still, walk, jumps, weekends])
def test_bands_of_days_cover_with_their_weekly_pattern(course: Course, times: int) -> None:
    assert covered(course, times, 1.5, weekly=True)[0] >= COVERED


def early_rise(times: int) -> Floats:
    """The share of those who have changed: six in ten, within the first tenth of the time."""
    rise: Floats = 0.6 * np.minimum((np.arange(times) + 1) / max(2, times // 10), 1)
    return rise


def launch(times: int) -> Floats:
    """Half of all, from the middle on, three in ten of the rest in each period."""
    since = np.maximum(np.arange(times) - times // 2 + 1, 0)
    rise: Floats = 0.5 * (1 - 0.7**since)
    return rise


@pytest.mark.parametrize(
    ("shares", "people", "worst"),
    [(early_rise(24), 3_000, 0.49), (early_rise(52), 8_000, 0.71), (launch(52), 8_000, 0.82)],
    ids=["early, 24", "early, 52", "launch, 52"],
)
def test_bands_cover_over_all_periods_together_but_not_each_right_at_a_sudden_change(
    shares: Floats, people: int, worst: float
) -> None:
    """The worst period's coverage, which the sentence with the bands is about.

    `answers = 1` at epsilon 1; 400 campaigns, so that it has a standard error of .025 at most, and
    the mean one of .004: more than .08 apart has a probability below .002. Raw figures of that
    period cover, with .011: fewer than .91 have one below .001.
    """
    generator, right = np.random.default_rng(19), 1 / (1 + exp(-1))
    reports = generator.multinomial(people, np.full(len(shares), 1 / len(shares)), 400)
    gap = 2 * right - 1
    observed = generator.binomial(reports, 1 - right + gap * shares) / reports
    raw, errors = (observed - 1 + right) / gap, np.sqrt(observed * (1 - observed) / reports) / gap
    figures, deviations = Smoother.fit(raw, errors).smooth(raw)
    inside = (np.abs(figures - shares) <= REACH * deviations).mean(axis=0)
    at = int(inside.argmin())

    assert inside.mean() >= COVERED
    assert inside[at] == pytest.approx(worst, abs=0.08)
    assert (np.abs(raw - shares) <= REACH * errors)[:, at].mean() >= 0.91


def test_the_likeliest_steps_alone_miss_jumps() -> None:
    """What is guarded against; and without a weekly pattern weekends are missed."""
    with patch.object(smoothing, "UNREJECTED", 0.0):
        likeliest, _ = covered(jumps, 52, 0.5, weekly=False)
    flat, _ = covered(weekends, 84, 1.5, weekly=False)

    assert likeliest < COVERED
    assert flat < COVERED


@pytest.mark.parametrize(("times", "narrower"), [(12, 0.7), (52, 0.4)])
def test_a_level_that_is_still_is_known_far_better(times: int, narrower: float) -> None:
    assert covered(still, times, 0, weekly=False)[1] < narrower


def test_a_time_without_an_estimate_is_bridged_and_smoothing_is_linear() -> None:
    generator = np.random.default_rng(1)
    estimates, errors = generator.normal(5, 1, (2, 30)), np.ones((2, 30))
    estimates[:, 7] = np.nan
    smoother = Smoother.fit(estimates, errors)
    figures, deviations = smoother.smooth(estimates)
    doubled, same = smoother.smooth(2 * estimates + 3)

    assert np.isfinite(figures).all()
    assert (deviations[:, 7] >= deviations[:, 6]).all()
    assert doubled == pytest.approx(2 * figures + 3, abs=1e-6)
    assert np.array_equal(same, deviations)
