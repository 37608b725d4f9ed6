"""Intervals of what follows from moments cover, by simulated reports of known people.

Seeds are fixed; alpha is that of each bound. A planted mistake must fall below the same bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from veilcount_analysis.estimation.confidence_intervals import Counts, Floats
from veilcount_analysis.estimation.moments import (
    Figures,
    Function,
    MomentMeans,
    Numbers,
    covariances,
    means,
    regression,
)
from veilcount_analysis.mechanisms.handler import handler_of
from veilcount_analysis.mechanisms.mean import MeanHandler
from veilcount_analysis.mechanisms.moments import MomentsHandler
from veilcount_shared.domain import GRID
from veilcount_shared.mechanisms import Moments

ALPHA = 1e-6
ROUNDS, N, LEVEL = 150, 40_000, 0.9
MIXED = np.array([[0.45, 0.0, 0.0], [0.25, 0.35, 0.0], [-0.2, 0.1, 0.4]])
Stated = Callable[[MomentMeans], Figures]
#: figures, and the function of the exact moments that they are of
FIGURES: dict[str, tuple[Stated, Function]] = {
    "means": (lambda found: found.figures(means, LEVEL), means),
    "deviations": (
        lambda found: found.deviations(LEVEL),
        lambda numbers: np.sqrt(numbers.variances),
    ),
    "covariances": (lambda found: found.figures(covariances, LEVEL), covariances),
    "correlations": (
        lambda found: found.correlations(LEVEL),
        lambda numbers: covariances(numbers) / spreads(numbers),
    ),
    "coefficients": (
        lambda found: found.coefficients(2, LEVEL),
        lambda numbers: regression(2)(numbers)[:-1],
    ),
    "intercept": (
        lambda found: found.figures(lambda numbers: regression(2)(numbers)[-1:], LEVEL),
        lambda numbers: regression(2)(numbers)[-1:],
    ),
}


def spreads(numbers: Numbers) -> Floats:
    """The product of the deviations of each two different numbers."""
    deviations = np.sqrt(numbers.variances)
    return np.outer(deviations, deviations)[np.triu_indices(len(deviations), 1)]


def handler() -> MomentsHandler:
    found = handler_of(Moments.for_epsilon(Fraction(4), 3))
    assert isinstance(found, MomentsHandler)
    return found


def people(generator: np.random.Generator, n: int) -> Floats:
    """Three numbers from -1 to 1 that hang together, uneven and bounded as real ones are."""
    numbers: Floats = np.tanh(generator.normal(size=(n, 3)) @ MIXED.T + 0.2)
    return numbers


@cache
def exact() -> MomentMeans:
    """The moments of very many people, with nothing uncertain."""
    numbers = people(np.random.default_rng(0), 4_000_000)
    points = [
        numbers[:, list(moment)].prod(axis=1).mean() for moment in handler().mechanism.moments
    ]
    return MomentMeans(3, np.full(9, len(numbers) / 9), np.array(points), np.zeros(9))


@cache
def estimates() -> list[MomentMeans]:
    rounds = []
    for seed in range(ROUNDS):
        generator = np.random.default_rng(seed + 1)
        points = np.rint((people(generator, N) + 1) / 2 * GRID).astype(np.int64)
        drawn = handler().draw_moments(points, generator)
        messages = handler().draw_messages(drawn, generator)
        counters = np.bincount(messages, minlength=handler().mechanism.messages)
        rounds.append(handler().means(counters))
    return rounds


def covered(found: list[MomentMeans], name: str) -> Counts:
    """Of the rounds, how often each interval covers; one not stated leaves all possible."""
    stated, function = FIGURES[name]
    truth, figures = function(exact().numbers()), [stated(each) for each in found]
    hits: Counts = np.sum(
        [~((figure.low > truth) | (truth > figure.high)) for figure in figures], axis=0
    )
    return hits


@pytest.mark.parametrize("name", FIGURES)
def test_intervals_cover_and_those_of_all_reports_for_each_moment_do_not(name: str) -> None:
    """Planted: the error of a moment that every device reports, a third of the real one."""
    least = binom.ppf(ALPHA, ROUNDS, LEVEL)
    wrong = [replace(estimate, variances=estimate.variances / 9) for estimate in estimates()]

    assert (covered(estimates(), name) >= least).all()
    assert (covered(wrong, name) < least).all()


def test_the_error_of_a_moment_is_that_of_the_formula() -> None:
    """The variance is that of one mean, times the number of moments, and what people differ by.

    A quarter of it for a square, which is in [0, 1].
    """
    range_squared = np.where(exact().is_square, 1, 4)
    noise, people_differ = range_squared * handler().noise_variance() / N, 9 / N
    found = np.mean([estimate.variances for estimate in estimates()], axis=0)
    spread = np.var([estimate.points for estimate in estimates()], axis=0)

    assert ((found > noise / 2) & (found < noise + people_differ)).all()
    assert spread.sum() == pytest.approx(found.sum(), rel=0.15)


def test_a_variance_costs_less_than_half_of_what_squares_among_products_cost() -> None:
    """Planted: squares reported as other products, on [-1, 1]. 60 rounds of three features.

    At epsilon 2 and even numbers the mean square errors are 1 to 5.7, with a relative standard
    deviation of .15: a quotient below 2.5 has a probability below 1e-4.
    """
    generator, mechanism = np.random.default_rng(3), Moments.for_epsilon(Fraction(2), 3)
    of, mean = MomentsHandler(mechanism), MeanHandler(mechanism.mean)
    decoded = 2 * np.array(mechanism.mean.decoded, np.float64) - 1
    errors, planted = [], []
    for _ in range(60):
        numbers = generator.uniform(-1, 1, (N, 3))
        points = np.rint((numbers + 1) / 2 * GRID).astype(np.int64)
        messages = of.draw_messages(of.draw_moments(points, generator), generator)
        estimate = of.means(np.bincount(messages, minlength=mechanism.messages))
        errors.append(estimate.numbers().variances - 1 / 3)
        among_products = estimate.points.copy()
        for place in np.flatnonzero(estimate.is_square):
            squares = numbers[place :: len(estimate.points), 0] ** 2
            grid = np.rint((squares + 1) / 2 * GRID).astype(np.int64)
            levels = mean.draw_messages(mean.draw_inputs(grid, generator), generator)
            among_products[place] = decoded[levels].mean()
        old = replace(estimate, points=among_products)
        planted.append(old.numbers().variances - 1 / 3)

    assert np.square(planted).mean() > 2.5 * np.square(errors).mean()


def test_squares_are_unbiased_among_covers_of_a_shuffler() -> None:
    """A cover is a uniform level, the middle of any moment's range: 1/2 of a square's.

    Planted: covers counted as persons'. Six standard errors are exceeded with 2e-9 a moment.
    """
    generator, covers = np.random.default_rng(8), N // 2
    points = np.rint((people(generator, N) + 1) / 2 * GRID).astype(np.int64)
    messages = handler().draw_messages(handler().draw_moments(points, generator), generator)
    uniform = generator.integers(handler().mechanism.messages, size=covers)
    counters = np.bincount(
        np.concatenate([messages, uniform]), minlength=handler().mechanism.messages
    )
    subtracted, counted = (handler().means(counters, number) for number in (covers, 0))
    squares = subtracted.is_square
    off, wrong = (
        (np.abs(means.points - exact().points) / np.sqrt(means.variances))[squares]
        for means in (subtracted, counted)
    )

    assert (off < 6).all()
    assert (wrong > 6).all()


SCARCE = 4_000


@cache
def weak_estimates() -> list[MomentMeans]:
    """Rounds in which a variance is about as large as its error: epsilon 1, few people."""
    rounds = []
    weak = MomentsHandler(Moments.for_epsilon(Fraction(1), 3))
    for seed in range(2 * ROUNDS):
        generator = np.random.default_rng([seed, SCARCE])
        points = np.rint((people(generator, SCARCE) + 1) / 2 * GRID).astype(np.int64)
        messages = weak.draw_messages(weak.draw_moments(points, generator), generator)
        rounds.append(weak.means(np.bincount(messages, minlength=weak.mechanism.messages)))
    return rounds


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "intercept"])
def test_intervals_cover_where_a_variance_is_barely_known(name: str) -> None:
    """An interval stated wherever the estimate is large would hold in few of those rounds."""
    assert (covered(weak_estimates(), name) >= binom.ppf(ALPHA, 2 * ROUNDS, LEVEL)).all()


def test_a_quotient_by_what_may_be_nothing_is_not_stated() -> None:
    """Of numbers that hardly vary no coefficient is, in most rounds; of those above all are."""
    still = [
        replace(each, points=np.append(np.zeros(3), np.random.default_rng(seed).normal(0, 0.01, 6)))
        for seed, each in enumerate(estimates())
    ]

    def stated(rounds: list[MomentMeans]) -> int:
        return sum(bool(np.isfinite(each.coefficients(2, LEVEL).low).any()) for each in rounds)

    assert stated(estimates()) == ROUNDS
    assert stated(still) < ROUNDS / 4
