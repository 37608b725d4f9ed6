"""Running totals: each strategy is exact without noise, its sensitivity is found, intervals cover.

Seeded; alpha = 1e-4 for more misses than an interval may have.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isclose, sqrt
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from veilcount_aggregator.store import Store
from veilcount_analysis.errors import QueryError
from veilcount_analysis.releases import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    NoiseKind,
    PricedQuery,
    draw_release,
    part_noise,
    price_query,
)
from veilcount_analysis.releases.noise_kinds import NoiseDistribution
from veilcount_analysis.releases.prefix_sums import best_strategy, strategies
from veilcount_shared.collection import Adjacency
from veilcount_shared.domain import Boolean, Choice, Number
from veilcount_shared.periods import Unit

from ..curator_fixtures import AGE, OVER, curator, fill, wanted
from .release_fixtures import ADD_REMOVE, SUBSTITUTE, collection, exactly, simulated, whole

DELTA = Fraction(1, 10**6)
LAPLACE, GAUSSIAN = NoiseKind.LAPLACE, NoiseKind.GAUSSIAN


def priced(
    domain: Boolean | Choice | Number | None = None, adjacency: Adjacency = ADD_REMOVE, **cost: str
) -> PricedQuery:
    """Over all 81 days of the collection."""
    each = collection(
        domain or Boolean(),
        adjacency,
        unit=Unit.DAY,
        answers=2,
        budget=Fraction(4),
        delta=DELTA if "rho" in cost else None,
    )
    return price_query({"query": "running_total", **(cost or {"epsilon": "1"})}, each)


# -- the strategies --------------------------------------------------------------------------------


@pytest.mark.parametrize("periods", [1, 2, 7, 12, 81])
def test_totals_follow_from_every_strategy_and_no_column_is_heavier_than_stated(
    periods: int,
) -> None:
    values = np.random.default_rng(periods).integers(0, 10**6, periods)
    for strategy in strategies(periods):
        columns = strategy.rows.T

        assert strategy.totals @ (strategy.rows @ values) == pytest.approx(
            values.cumsum(), rel=1e-9
        )
        assert strategy.l1 == max(abs(column).sum() for column in columns)
        assert strategy.l2_squared == max((column**2).sum() for column in columns)


@pytest.mark.parametrize(
    ("periods", "kind", "name"),
    [
        (7, LAPLACE, "summed"),
        (12, LAPLACE, "summed"),
        (52, LAPLACE, "13-ary tree"),
        (180, LAPLACE, "16-ary tree"),
        (365, LAPLACE, "11-ary tree"),
        (7, GAUSSIAN, "square root"),
        (180, GAUSSIAN, "square root"),
    ],
)
def test_the_strategy_with_the_least_predicted_error_is_taken(
    periods: int, kind: NoiseKind, name: str
) -> None:
    assert best_strategy(periods, kind).name == name


def test_predicted_errors_are_those_of_the_literature() -> None:
    """A year of days, unit sensitivity: epsilon 1, and rho 1/2 sqrt of the factorization's norm."""
    found = {each.name: each for each in strategies(365)}
    summed, root = found["summed"], found["square root"]
    trees = [summed, found["2-ary tree"], found["11-ary tree"]]
    laplace = [sqrt(2) * each.predicted_error(LAPLACE) for each in trees]

    assert laplace == pytest.approx([19.1, 14.2, 9.06], abs=0.1)
    assert summed.predicted_error(GAUSSIAN) == pytest.approx(sqrt(366 / 2), rel=1e-6)
    steps = np.arange(1, 365)
    exact = np.cumprod(np.concatenate([[1.0], (2 * steps - 1) / (2 * steps)])) ** 2
    norms = exact.sum() * np.cumsum(exact).mean()
    assert root.predicted_error(GAUSSIAN) == pytest.approx(sqrt(norms), rel=0.01)


@pytest.mark.parametrize(
    "noise", [DiscreteLaplaceNoise(3.0), DiscreteGaussianNoise(3.0)], ids=["laplace", "gaussian"]
)
def test_a_total_s_half_width_covers(noise: NoiseDistribution) -> None:
    """All strategies at once; alpha = 1e-4. A third of the width does not cover."""
    generator = np.random.default_rng(3)
    for strategy in strategies(30):
        widths = strategy.half_widths(noise, 0.05)
        drawn = np.array([noise.draw(len(strategy.rows), generator) for _ in range(300)])
        off = abs(drawn @ strategy.totals.T)
        most = binom.isf(1e-4 / 30, 300, 0.05)

        assert ((off > widths).sum(axis=0) <= most).all()
        assert ((off > widths / 3).sum(axis=0) > most).any()


def chernoff(totals: NDArray[np.float64], noise: DiscreteLaplaceNoise) -> NDArray[np.float64]:
    """Return Chernoff's bound of each total at 5 %, which needs no distribution of a sum."""
    norms, largest = (totals**2).sum(axis=1), abs(totals).max(axis=1)
    best = np.full(len(norms), np.inf)
    for t in np.geomspace(1e-4, 1, 200) * noise.largest_t:
        moments = norms / largest**2 * noise.log_moment(float(t))
        best = np.minimum(best, (moments + np.log(40)) / t)
    return np.asarray(best * largest)


@pytest.mark.parametrize("periods", [52, 365])
def test_half_widths_are_of_the_sums_own_distribution(periods: int) -> None:
    """2,000 draws of all totals: 95 % +/- .5 % on average (false alarm below 1e-9, as totals share
    draws at most); what Chernoff's bound gives is 1.4 times as wide, and covers 99 %."""
    strategy = best_strategy(periods, LAPLACE)
    noise = DiscreteLaplaceNoise(float(strategy.l1))
    size = (2000, len(strategy.rows))
    generator, chance = np.random.default_rng(5), 1 - np.exp(-1 / strategy.l1)
    drawn = generator.geometric(chance, size) - generator.geometric(chance, size)
    off, widths = abs(drawn @ strategy.totals.T), strategy.half_widths(noise, 0.05)
    wide = chernoff(strategy.totals, noise)

    assert 0.94 <= (off <= widths).mean() <= 0.975
    assert (off <= widths).mean(axis=0).min() >= 0.93
    assert (off <= wide).mean() > 0.985
    assert widths.mean() <= wide.mean() / 1.4


@pytest.mark.parametrize("scale", [0.25, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("noise", [DiscreteLaplaceNoise, DiscreteGaussianNoise])
def test_half_widths_of_sums_on_a_lattice_cover(
    noise: type[DiscreteLaplaceNoise | DiscreteGaussianNoise], scale: float
) -> None:
    """Plain sums of up to twelve draws: their exact distribution, by convolution."""
    steps = np.arange(-60, 61)
    size = np.abs(steps) / scale
    weights = np.exp(-size if noise is DiscreteLaplaceNoise else -(size**2) / 2)
    one = weights / weights.sum()
    chances = np.ones(1)
    for number in range(1, 13):
        chances = np.convolve(chances, one)
        off = np.abs(np.arange(len(chances)) - len(chances) // 2)
        for alpha in (0.05, 0.01):
            (width,) = noise(scale).weighted_half_widths(np.ones((1, number)), alpha)

            assert chances[off > width].sum() <= alpha


# -- the query -------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, SUBSTITUTE])
@pytest.mark.parametrize("domain", [Boolean(), whole(-1, 2), Choice(("a", "b"))], ids=str)
@pytest.mark.parametrize("cost", [{"epsilon": "1"}, {"rho": "0.01"}], ids=str)
def test_no_neighbour_is_farther_than_the_sensitivity(
    domain: Boolean | Choice | Number, adjacency: Adjacency, cost: dict[str, str]
) -> None:
    """One unit of one day, added, removed or substituted, on any day."""
    question = priced(domain, adjacency, **cost)
    days, inputs = len(question.periods), question.collection.inputs
    (part,) = question.parts

    def released(counters: NDArray[np.int64]) -> list[int]:
        return list(draw_release(question, counters, noise=exactly).noised[0])

    def one(day: int, place: int) -> NDArray[np.int64]:
        counters = np.ones((days, inputs), np.int64)
        counters[day, place] += 1
        return counters

    none = released(np.ones((days, inputs), np.int64))
    found = [[released(one(day, place)) for place in range(inputs)] for day in (0, 40, days - 1)]
    pairs = [
        (each, other)
        for day in found
        for each in day
        for other in ([none] if adjacency is ADD_REMOVE else day)
    ]
    moved = [np.array(each) - np.array(other) for each, other in pairs]
    l1, squared = (max(int((abs(move) ** power).sum()) for move in moved) for power in (1, 2))
    same = adjacency is SUBSTITUTE and isinstance(domain, Choice)  # how many there are: no change

    assert l1 == (0 if same else part.sensitivity)
    assert squared == (0 if same else part.squared_sensitivity)


@pytest.mark.parametrize(
    ("cost", "kind"), [({"epsilon": "0.5"}, LAPLACE), ({"rho": "0.01"}, GAUSSIAN)], ids=str
)
def test_released_totals_cover_and_noise_of_a_wrong_scale_does_not(
    cost: dict[str, str], kind: NoiseKind
) -> None:
    question = priced(Boolean(), ADD_REMOVE, **cost)
    counters = np.random.default_rng(1).integers(0, 50, (len(question.periods), 2))
    true, most = counters[:, 1].cumsum(), binom.isf(1e-4 / 81, 100, 0.05)

    def misses(wrong: float) -> NDArray[np.int64]:
        noise = simulated(kind, 6, wrong)
        drawn = [draw_release(question, counters, noise=noise) for _ in range(100)]
        outside = [(np.array(one.low) > true) | (true > np.array(one.high)) for one in drawn]
        return np.asarray(np.array(outside).sum(axis=0), np.int64)

    assert (misses(1) <= most).all()
    assert (misses(4) > most).any()


def test_a_release_names_its_strategy_its_days_and_its_widest_error() -> None:
    question = priced(rho="0.01")
    released = draw_release(question, np.ones((81, 2), np.int64))
    (part,) = part_noise(question)

    assert (part.name, part.distribution) == ("square root", "gaussian")
    assert (released.labels[0], released.labels[-1]) == ("2026-01-10", "2026-03-31")
    assert isclose(max(np.subtract(released.high, released.values)), part.half_width, abs_tol=1)


def test_a_curator_totals_the_days_of_a_store(store: Store, tmp_path: Path) -> None:
    """Each day is charged once, and a day without answers is one, too."""
    for period, truth in ((0, [3, 2, 1, 0]), (1, [0, 0, 9, 1]), (3, [1, 1, 1, 1])):
        fill(store, AGE, truth, period)
    result = curator(store, tmp_path / "releases.jsonl").answer(
        AGE, wanted("running_total", 1, 0, 4), OVER, ""
    )
    release = result.release

    assert result.question.charges == dict.fromkeys(range(5), 1_000_000)
    assert release.noise[0].sensitivity == 3
    most = 4 * release.noise[0].half_width  # exceeded once in 30,000 runs
    assert (abs(np.subtract(release.values, (4, 25, 25, 31, 31))) <= most).all()
    assert release.labels == tuple(f"2026-12-0{day}" for day in range(1, 6))


@pytest.mark.parametrize(
    ("domain", "says"),
    [
        (lambda: whole(0, 1 << 16), "scale them"),
        (lambda: Choice(tuple(range(600_000))), "at most 27 periods"),
    ],
)
def test_totals_that_would_be_too_large_are_refused(
    domain: Callable[[], Choice | Number], says: str
) -> None:
    with pytest.raises(QueryError, match=says):
        priced(domain())


def test_public_totals_are_not_sold() -> None:
    each = collection(Choice(("a", "b")), SUBSTITUTE, unit=Unit.DAY)
    with pytest.raises(QueryError, match="costs nothing"):
        price_query({"query": "running_total", "epsilon": 1}, each)
