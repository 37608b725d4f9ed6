"""Several batches of one person compose as dp-accounting computes, and as enumeration shows."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from importlib import import_module
from math import exp, isclose, log

import numpy as np
import pytest
from scipy.stats import binom

from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.privacy.shuffled import (
    composed_epsilon,
    cover_delta,
    cover_epsilon,
    least_covers,
)
from veilcount_analysis.privacy.shuffled.covers import grid_delta
from veilcount_analysis.privacy.shuffled.loss_grid import LossGrid
from veilcount_shared.mechanisms import Randomizer, RangeTree, SubsetSelection

from ..aggregator.exact_rows import rows_of
from .test_amplification import joined
from .test_shuffled import DELTA, FOUR, HALF, ONE, TWO, cells, covered

pld = import_module("dp_accounting.pld.privacy_loss_distribution")  # brings no types along


@cache
def cover_pair(k: int, covers: int) -> tuple[dict[tuple[int, int], float], ...]:
    """The distribution of the two counts under each value: one report, convolved with covers."""
    ratio, pairs = exp(4), []
    report = {(1, 0): ratio, (0, 1): 1.0, (0, 0): k - 2.0}
    for swap in (False, True):
        counts: dict[tuple[int, int], float] = {}
        for total in range(covers + 1):
            weight = float(binom.pmf(total, covers, 2 / k))
            if weight < 1e-25:
                continue
            firsts = np.arange(total + 1)
            for first, part in zip(firsts, binom.pmf(firsts, total, 0.5), strict=True):
                for (x, y), own in report.items():
                    key = (int(first) + (y if swap else x), total - int(first) + (x if swap else y))
                    counts[key] = counts.get(key, 0) + weight * float(part) * own / (ratio + k - 1)
        pairs.append(counts)
    return tuple(pairs)


def accounted_epsilon(k: int, covers: int, batches: int) -> float:
    """The epsilon that Google's dp-accounting composes, on a grid of 5e-5."""
    one, two = cover_pair(k, covers)
    logs = [{key: log(p) for key, p in side.items() if p > 1e-30} for side in (one, two)]
    losses = pld.from_two_probability_mass_functions(
        logs[1], logs[0], value_discretization_interval=5e-5, symmetric=False
    )
    return float(losses.self_compose(batches).get_epsilon_for_delta(1e-6))


@pytest.mark.parametrize(
    ("k", "covers", "batches", "epsilon"),
    [
        (4, 142, 6, 2.50),
        (4, 142, 12, 3.65),
        (2, 1_000, 7, 0.66),
        (2, 1_000, 30, 1.45),
        (2, 1_000, 365, 5.83),
    ],
)
def test_batches_compose_as_dp_accounting_computes(
    k: int, covers: int, batches: int, epsilon: float
) -> None:
    composed = float(composed_epsilon(cells(k), covers, batches, DELTA))
    accounted = accounted_epsilon(k, covers, batches)

    assert round(composed, 2) == epsilon
    assert isclose(composed, accounted, rel_tol=0.01)
    assert not isclose(
        float(composed_epsilon(cells(k), covers * 9 // 10, batches, DELTA)), accounted, rel_tol=0.01
    )


@pytest.mark.parametrize(
    "mechanism",
    [RangeTree.for_epsilon(FOUR), SubsetSelection.for_epsilon(FOUR, 256, 4)],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_the_composition_of_one_batch_is_its_own_epsilon(mechanism: Randomizer) -> None:
    covers = least_covers(mechanism, ONE, DELTA)
    single = cover_epsilon(mechanism, covers, DELTA)

    assert single <= composed_epsilon(mechanism, covers, 1, DELTA) <= single * Fraction("1.001")
    assert composed_epsilon(mechanism, covers, 12, DELTA) < 5


@pytest.mark.parametrize("batches", [1, 6, 12])
def test_losses_taken_from_delta_dominate_the_exact_ones_closely(batches: int) -> None:
    overlaps = handler_of(cells(4)).overlaps()
    losses = LossGrid.from_delta(lambda at: grid_delta(overlaps, 142, at), log(overlaps[0].ratio))
    joined_points = losses.composed(batches).epsilon(float(DELTA))
    exact = float(composed_epsilon(cells(4), 142, batches, DELTA))

    assert exact <= joined_points <= 1.01 * exact


@pytest.mark.parametrize("at", [Fraction(1, 10), HALF, ONE])
def test_two_small_batches_with_a_drawn_part_reveal_no_more_than_composed(at: Fraction) -> None:
    """Enumerated: the delta of both batches together, at the epsilon that is computed for it."""
    two, three = cells(2, TWO), cells(3, TWO)
    rows = [[p / 2 for p in (*rows_of(two)[x], *rows_of(three)[x])] for x in range(2)]
    cover = [Fraction(1, 4)] * 2 + [Fraction(1, 6)] * 3
    overlaps = handler_of(two).overlaps() + handler_of(three).overlaps()
    one, other = (joined(covered(rows, 2, cover), row) for row in rows)
    pairs = [(float(one[c]), float(other[c])) for c in one]
    losses = LossGrid.from_delta(lambda e: cover_delta(overlaps, 2, e), log(overlaps[0].ratio))

    def exact(epsilon: float) -> float:
        return sum(max(a * c - exp(epsilon) * b * d, 0) for a, b in pairs for c, d in pairs)

    delta = exact(float(at))
    assert float(at) <= losses.composed(2).epsilon(delta) <= 1.05 * float(at)
    assert losses.composed(1).epsilon(delta) < float(at), "one batch in place of two is caught"


def test_many_batches_never_cost_more_than_the_sum_of_the_reports() -> None:
    assert 12 >= composed_epsilon(cells(4), 0, 3, DELTA) > Fraction("11.99")
    assert composed_epsilon(cells(4), 1, 2, DELTA) <= 8
