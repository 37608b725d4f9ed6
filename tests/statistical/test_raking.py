"""Raking: figures of the population, from devices whose consent depends on age and region.

The population has 5 ages x 4 regions, which depend on each other in a way that the margins do not
show. The young and the urban consent up to 15 times as often, and say yes more often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp

import numpy as np
import pytest
from numpy.random import Generator

from veilcount_analysis.estimation.confidence_intervals import Counts, Floats, quantile
from veilcount_analysis.estimation.proportions import SupportCounts
from veilcount_analysis.estimation.raking import (
    CellSupports,
    Margins,
    RakedShares,
    difference_interval,
)
from veilcount_analysis.estimation.response_distribution import ResponseDistribution

AGES, REGIONS = np.array([0.16, 0.21, 0.22, 0.21, 0.20]), np.array([0.4, 0.3, 0.2, 0.1])
CELLS = len(AGES) * len(REGIONS)
DIGITS = np.stack(np.unravel_index(np.arange(CELLS), (len(AGES), len(REGIONS))), axis=1)
MARGINS = Margins(DIGITS, (AGES, REGIONS))
DEPENDENCE = 1 + 0.15 * np.outer(np.linspace(-1, 1, 5), np.linspace(1, -1, 4))
POPULATION = MARGINS.rake((np.outer(AGES, REGIONS) * DEPENDENCE).ravel())
YES = np.add.outer(np.linspace(0.8, 0.2, 5), [0.05, 0.0, -0.05, -0.1]).ravel()
CONSENT = np.outer([0.30, 0.25, 0.15, 0.08, 0.04], [1, 0.9, 0.7, 0.5]).ravel()
TRUTH = float(POPULATION @ YES)
LEVEL, RUNS = 0.95, 500


def response(epsilon: float) -> ResponseDistribution:
    p = exp(epsilon) / (1 + exp(epsilon))
    return ResponseDistribution(p, 1 - p, 2 * p - 1, p * (1 - p), 0.0)


def raked(n: Counts, supports: Counts, epsilon: float, contributions: int = 1) -> RakedShares:
    """Return the raked share of yes."""
    rows = zip(n.tolist(), supports, strict=True)
    cells = [SupportCounts(size, np.array([count]), response(epsilon), 1) for size, count in rows]
    return RakedShares(CellSupports.from_counts(cells), MARGINS, contributions)


def devices(n: int, generator: Generator, odds: float = 1.0, yes: Floats = YES) -> Sequence[Counts]:
    """Return how many devices of each cell consent and say yes, and no; `odds` of those of yes."""
    weights = np.concatenate([odds * POPULATION * CONSENT * yes, POPULATION * CONSENT * (1 - yes)])
    return np.split(generator.multinomial(n, weights / weights.sum()), 2)


def reports(held: Sequence[Counts], epsilon: float, generator: Generator) -> tuple[Counts, Counts]:
    """Return how many reports each cell has, and how many support yes."""
    yes, no = held
    p = response(epsilon).P
    return yes + no, generator.binomial(yes, p) + generator.binomial(no, 1 - p)


def runs(
    n: int, epsilon: float = 1, odds: float = 1.0, yes: Floats = YES, seed: int = 1
) -> list[RakedShares]:
    generator = np.random.default_rng(seed)
    drawn = (devices(n, generator, odds, yes) for _ in range(RUNS))
    return [raked(*reports(held, epsilon, generator), epsilon) for held in drawn]


def coverage(shares: Sequence[RakedShares], truth: float = TRUTH) -> float:
    ends = [share.interval(1 - LEVEL) for share in shares]
    return float(np.mean([low[0] <= truth <= high[0] for low, high in ends]))


def by_normal(points: Floats, errors: Floats, truth: float = TRUTH) -> float:
    """Return the coverage of normal intervals."""
    return float(np.mean(np.abs(points - truth) <= quantile(1 - LEVEL) * errors))


@pytest.fixture(scope="module")
def drawn() -> list[RakedShares]:
    return runs(5_000)


def test_a_raked_share_is_unbiased_and_its_interval_holds(drawn: list[RakedShares]) -> None:
    """False alarms: 4.4 standard errors of the bias, 1e-5; coverage 3e-5 at .945."""
    points = np.array([share.points[0] for share in drawn])

    assert abs(points.mean() - TRUTH) <= 0.004
    assert coverage(drawn) >= 0.90


def test_the_raw_share_is_biased_and_no_interval_says_so(drawn: list[RakedShares]) -> None:
    """Weights by the raw counts are what today's figure has: the same check rejects them."""
    raw = [
        SupportCounts(share.n, share.cells.supports.sum(axis=0), response(1), 1) for share in drawn
    ]
    points = np.array([share.points[0] for share in raw])
    errors = np.array([np.sqrt((1 / 4 / share.n) / response(1).gap ** 2) for share in raw])

    assert abs(points.mean() - TRUTH) == pytest.approx(0.127, abs=0.004)
    assert by_normal(points, errors) < 0.05


def test_a_variance_without_the_weights_is_too_small(drawn: list[RakedShares]) -> None:
    """What n reports of weight 1 would have: planted, and rejected by the coverage above."""
    points = np.array([share.points[0] for share in drawn])
    errors = np.array([0.5 / response(1).gap / np.sqrt(share.n) for share in drawn])

    assert by_normal(points, errors) < 0.90


def test_weights_meet_every_margin(drawn: list[RakedShares]) -> None:
    for share in drawn[:50]:
        cells = share.population.reshape(len(AGES), len(REGIONS))

        assert np.abs(cells.sum(axis=1) - AGES).max() < 1e-9
        assert np.abs(cells.sum(axis=0) - REGIONS).max() < 1e-9
        assert share.meets_margins
        assert 1.6 < share.design_effect < 1.9
        assert 3 < share.largest_weight < 15


def test_reports_like_the_population_have_one_weight() -> None:
    n = np.rint(1e6 * POPULATION).astype(np.int64)
    share = raked(n, n // 2, 1)

    assert share.design_effect == pytest.approx(1, abs=1e-6)
    assert share.largest_weight == pytest.approx(1, abs=1e-3)
    assert share.points[0] == pytest.approx(0.5, abs=1e-4)


def test_margins_that_no_weights_meet_are_noticed() -> None:
    """The old live nowhere but in the last region, and there are more of them than of it."""
    n = np.full((len(AGES), len(REGIONS)), 100)
    n[-1, :-1] = 0

    assert not raked(n.ravel(), n.ravel() // 2, 1).meets_margins


def test_what_consent_that_depends_on_the_answer_does_raking_cannot_see() -> None:
    """As the documentation has it: odds of 1.5, bias .22 to .08, and no interval holds."""
    shares = runs(20_000, odds=1.5)
    points = np.array([share.points[0] for share in shares])
    raw = np.array([share.cells.supports.sum() / share.n for share in shares])
    raw = response(1).share(raw)

    assert raw.mean() - TRUTH == pytest.approx(0.22, abs=0.005)
    assert points.mean() - TRUTH == pytest.approx(0.08, abs=0.005)
    assert coverage(shares) == 0


def test_where_next_to_nobody_says_yes_the_tails_are_exact() -> None:
    """At epsilon 8 three in a thousand: of 500 intervals at least 93 %, false alarm 2e-4 at .965.

    The normal interval is the planted fault.
    """
    rare = np.full(CELLS, 0.003)
    shares = runs(1_000, 8, yes=rare)
    points = np.array([share.points[0] for share in shares])
    errors = np.sqrt([share.variance[0] for share in shares])

    assert coverage(shares, 0.003) >= 0.93
    assert by_normal(points, errors, 0.003) < 0.93
    nobody = raked(np.full(CELLS, 50), np.zeros(CELLS, np.int64), 8)
    assert nobody.interval(0.05)[1][0] > 0.002


def test_answers_of_one_person_are_one_sample_of_persons() -> None:
    """Each person reports four times the same: intervals hold, and without that do not."""
    generator, epsilon = np.random.default_rng(3), 4
    shares = []
    for _ in range(RUNS):
        held = [4 * part for part in devices(1_000, generator)]
        shares.append(raked(*reports(held, epsilon, generator), epsilon, contributions=4))

    assert coverage(shares) >= 0.92
    assert coverage([replace(share, contributions=1) for share in shares]) < 0.85


def test_differences_of_two_sides_cover() -> None:
    """Of 250 pairs at least 88 %: false alarm 1e-5 at .945; as if errors were halved, fewer.

    The same reports on both sides have the difference 0, and an interval that allows for them.
    """
    shares = runs(2_000, seed=9)
    pairs = list(zip(shares[::2], shares[1::2], strict=True))
    ends = np.array(
        [difference_interval(*pair, 1 - LEVEL, together=False) for pair in pairs]
    ).squeeze(axis=2)
    middle, half = ends.mean(axis=1), np.diff(ends, axis=1)[:, 0] / 2
    low, high = difference_interval(shares[0], shares[0], 1 - LEVEL, together=True)

    assert np.mean(np.abs(middle) <= half) >= 0.88
    assert np.mean(np.abs(middle) <= half / 2) < 0.88
    assert high[0] - low[0] > 1.4 * 2 * half.mean() * 0.95
    assert low[0] == -high[0]


# -- fakes -----------------------------------------------------------------------------------------

ATTACKS = ("scarcest", "two", "three", "any", "some")


def attacked(honest: RakedShares, fakes: int, attack: str, generator: Generator) -> RakedShares:
    """Return the figures after so many fakes, which all support yes or all do not."""
    scarcest = np.argsort(-honest.weights)
    cells = {
        "scarcest": scarcest[:1],
        "two": scarcest[:2],
        "three": scarcest[:3],
        "any": generator.choice(CELLS, 1),
        "some": generator.choice(CELLS, 3, replace=False),
    }[attack]
    added = np.bincount(cells[np.arange(fakes) % len(cells)], minlength=CELLS)
    supporting = added * generator.integers(2)
    return raked(honest.cells.n + added, honest.cells.supports[:, 0] + supporting, 1)


@pytest.mark.parametrize("attack", ATTACKS)
def test_fakes_that_choose_their_cells_leave_the_honest_figure_in_the_band(attack: str) -> None:
    """The band is a bound, not an interval: none of 60 may be outside.

    The band of a raw share, which knows no weights, is the planted fault.
    """
    generator = np.random.default_rng(5)
    outside = outside_raw = 0
    for run in range(60):
        n = 20_000 if run % 2 else 5_000
        honest = raked(*reports(devices(n * 99 // 100, generator), 1, generator), 1)
        after = attacked(honest, n // 100, attack, generator)
        low, high = after.poisoned(0.01)
        figure = honest.points[0]
        outside += not low[0] <= figure <= high[0]
        raw = 0.01 / 0.99 * (1 + after.cells.most - after.cells.least) / 2
        outside_raw += abs(figure - after.points[0]) > raw

    assert outside == 0
    assert attack in {"any", "some"} or outside_raw > 40


def test_no_fakes_move_nothing() -> None:
    share = raked(np.full(CELLS, 500), np.full(CELLS, 200), 1)

    assert [end[0] for end in share.poisoned(0)] == pytest.approx([share.points[0]] * 2)
