"""The exact tails of a cohort's support: those of sums of binomials, each computed once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from veilcount_analysis.estimation import IntervalTarget, LookCount, cohort_tails
from veilcount_analysis.estimation.cohort_tails import BLOCK, CohortSetting, block_tails
from veilcount_analysis.estimation.covered_supports import CoveredSupports
from veilcount_analysis.estimation.estimate_pair import EstimatePair
from veilcount_analysis.estimation.proportions import SupportCounts
from veilcount_analysis.mechanisms import share_handler

from .collection_fixtures import of_values

Floats = NDArray[np.float64]
VALUES, LEVEL = 20, 0.05


def chances(setting: CohortSetting, holders: int) -> Floats:
    """Convolve whole binomials: the probability of each support from 0 to all reports."""
    trials = [
        (holders, setting.P),
        (setting.n - holders, setting.Q),
        (setting.covers, setting.cover_support),
    ]
    support = np.ones(1)
    for number, chance in trials:
        support = np.convolve(support, binom.pmf(np.arange(number + 1), number, chance))
    return support


def settings() -> Iterator[CohortSetting]:
    generator = np.random.default_rng(7)
    for n in (1, 5, BLOCK - 1, BLOCK, 300, 2000):
        for covers in (0, 3, 142):
            P, Q = sorted(generator.uniform(0.0001, 0.9999, 2))[::-1]
            yield CohortSetting(n, float(P), float(Q), covers, float(generator.uniform(0.01, 0.9)))
    yield CohortSetting(1500, 1 - 1e-7, 1e-7)
    yield CohortSetting(1500, 1.0, 1e-9)
    yield CohortSetting(1500, 0.51, 0.49)


def most_wrong(setting: CohortSetting, shift: int = 0) -> float:
    """Return how far tails are off, of supports around what is expected, in parts of a tail.

    Below 1e-12 only as far as they are off by that. `shift`: a planted fault, holders too many.
    """
    n, worst = setting.n, 0.0
    between = min(BLOCK - 1, n)
    for fewest in {0, (n - between) // 2, n - between}:
        middle = (fewest + between // 2) * setting.P
        middle += (n - fewest - between // 2) * setting.Q + setting.covers * setting.cover_support
        supports = np.unique(
            np.clip(np.add(np.rint(middle), [-40, -5, 0, 1, 30]), 0, n + setting.covers)
        )
        supports = supports.astype(np.int64)
        begin = np.full(len(supports), fewest)
        upper, lower = (block_tails(setting, supports, begin, upper=side) for side in (True, False))
        for column in {0, between // 2, between}:
            support = chances(setting, min(fewest + column + shift, n))
            for row, least in enumerate(supports.tolist()):
                for tail, whole in (
                    (upper[row, column], support[least:].sum()),
                    (lower[row, column], support[: least + 1].sum()),
                ):
                    worst = max(worst, abs(tail - whole) / max(whole, 1e-12))
    return worst


@pytest.mark.parametrize("setting", list(settings()), ids=str)
def test_tails_are_those_of_the_sum_of_binomials(setting: CohortSetting) -> None:
    """To nine digits, in the middle and far out; one holder more, a planted fault, is noticed."""
    assert most_wrong(setting) < 1e-9
    assert most_wrong(setting, shift=1) > 1e-6


def sides(covers: int, epsilon: str, n: int) -> tuple[SupportCounts, SupportCounts]:
    response, generator = share_handler(of_values(VALUES, epsilon)).response, seeded(covers, n)
    supported = response.Q + response.gap * generator.dirichlet(np.ones(VALUES) / 3)
    one, two = (SupportCounts(n, generator.binomial(n, supported), response, 1) for _ in "ab")
    if not covers:
        return one, two
    mixed = [side.counts + generator.binomial(covers, 1 / VALUES, VALUES) for side in (one, two)]
    first, second = (
        CoveredSupports(n, counts, response, 1, covers, 1 / VALUES) for counts in mixed
    )
    return first, second


def seeded(*numbers: int) -> np.random.Generator:
    return np.random.default_rng(numbers)


def last_by_bisection(side: SupportCounts, row: int, least: float, *, upper: bool) -> int:
    """Return the last number of holders inside, from all of them: the table's answer."""
    covers = side.covers if isinstance(side, CoveredSupports) else 0
    setting = CohortSetting(side.n, side.response.P, side.response.Q, covers, 1 / VALUES)
    count, inside = int(side.counts[row]), []
    for holders in range(side.n + 1):
        support = chances(setting, holders)
        tail = support[count:].sum() if upper else support[: count + 1].sum()
        if tail > least:
            inside.append(holders)
    return min(inside) if upper else max(inside)


@pytest.mark.parametrize("covers", [0, 30])
def test_an_interval_ends_at_the_last_number_of_holders_inside(covers: int) -> None:
    """By all numbers of holders. Of covers, shares in between are as the nearest further in."""
    side, _ = sides(covers, "4", 90)
    outward = 1 / 2 if covers else 0
    for alpha in (0.3, 0.01, 1e-9):
        low, high = side.of_few(alpha, IntervalTarget.COHORT)
        for row in range(0, VALUES, 4):
            fewest, most = (
                last_by_bisection(side, row, alpha / 2, upper=upper) for upper in (True, False)
            )
            point = side.points[row]

            assert low[row] == min(max((fewest - outward) / side.n, 0), point)
            assert high[row] == max(min((most + outward) / side.n, 1), point)


def test_equal_supports_have_the_same_interval_alone_and_among_others() -> None:
    """Whatever was stored before."""
    side, _ = sides(0, "8", 5000)
    together = side.of_few(0.01, IntervalTarget.COHORT)
    cohort_tails._tail_table.cache_clear()
    for row in range(VALUES):
        alone = replace(side, counts=side.counts[[row, row]])
        for end, whole in zip(alone.of_few(0.01, IntervalTarget.COHORT), together, strict=True):
            assert end[0] == end[1] == whole[row]


def computed_blocks(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many blocks of tails the p-values of 20 values of a cohort take, a row each."""
    one, two = sides(0, "8", 20_011)
    rows, blocks = [], cohort_tails.block_tails

    def counted(
        setting: CohortSetting, supports: NDArray[np.int64], *more: NDArray[np.int64], upper: bool
    ) -> Floats:
        rows.append(len(supports))
        return blocks(setting, supports, *more, upper=upper)

    with monkeypatch.context() as patch:
        patch.setattr(cohort_tails, "block_tails", counted)
        EstimatePair(one, two, IntervalTarget.COHORT, None, LookCount.ONE).p_value(LEVEL)
    return sum(rows)


def test_a_p_value_computes_each_tail_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two sides and ends some three blocks a value; planted: a search that stores none."""
    cohort_tails._tail_table.cache_clear()
    once = computed_blocks(monkeypatch)
    monkeypatch.setattr(cohort_tails, "_tail_table", cohort_tails._tail_table.__wrapped__)

    assert 0 < once < 4 * 3 * VALUES
    assert computed_blocks(monkeypatch) > 6 * once


def test_tails_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: without a bound, new supports stay for good."""
    setting = CohortSetting(10**6, 0.9, 1e-5)
    table = cohort_tails.TailTable(setting, upper=True)
    monkeypatch.setattr(cohort_tails, "MOST_TAILS", 50 * BLOCK)
    for begin in range(0, 2000, 20):
        supports = np.arange(begin, begin + 20)
        table.last(supports, supports, np.full(20, 0.4))

        assert table.tails.size <= 80 * BLOCK
