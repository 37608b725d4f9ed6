"""Amplification is never overstated: against exact distributions, and published values."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from math import isclose

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.privacy.amplification import (
    Amplified,
    amplified,
    blanket_delta,
    blanket_epsilon,
    clones_delta,
    clones_epsilon,
    keeps_epsilon,
    largest_local_epsilon,
)
from veilcount_analysis.privacy.amplification.blanket import GridValues
from veilcount_shared import select_mechanism
from veilcount_shared.composition import Overlap, shuffle_amplification
from veilcount_shared.epsilon import exp_lower, exp_upper
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    MeanMechanism,
    ProjectiveGeometry,
    Randomizer,
    RangeTree,
    SquareWave,
    SubsetSelection,
)

from ..aggregator.exact_rows import Row, rows_of
from ..statistical.distributions import LOWER, with_epsilon

ONE, TWO, FOUR = Fraction(1), Fraction(2), Fraction(4)
DELTA = Fraction(1, 10**6)
Distribution = dict[tuple[int, ...], Fraction]

# -- exact distributions of a few shuffled reports -------------------------------------------------


def joined(distribution: Distribution, row: Row) -> Distribution:
    """The distribution of the histogram of messages with one more report in it."""
    result: Distribution = {}
    for counts, chance in distribution.items():
        for message, p in enumerate(row):
            key = (*counts[:message], counts[message] + 1, *counts[message + 1 :])
            result[key] = result.get(key, Fraction(0)) + chance * p
    return result


def exact_delta(
    rows: Sequence[Row], n: int, epsilon: Fraction, pairs: Sequence[tuple[int, int]]
) -> Fraction:
    """The worst delta over every dataset of n reports and these pairs of one of its inputs."""
    e, deltas = exp_upper(epsilon), []
    for others in combinations_with_replacement(range(len(rows)), n - 1):
        distribution: Distribution = {(0,) * len(rows[0]): Fraction(1)}
        for other in others:
            distribution = joined(distribution, rows[other])
        with_each = {x: joined(distribution, rows[x]) for x in {x for pair in pairs for x in pair}}
        for x, y in pairs:
            one, two = with_each[x], with_each[y]
            deltas.append(sum((max(one[c] - e * two[c], Fraction(0)) for c in one), Fraction(0)))
    return max(deltas)


SMALL = [
    (SubsetSelection.for_epsilon(ONE, 2, 1), 4),
    (SubsetSelection.for_epsilon(TWO, 2, 1), 4),
    (SubsetSelection.for_epsilon(ONE, 3, 1), 4),
    (SubsetSelection.for_epsilon(TWO, 3, 1), 4),
    (SubsetSelection.for_epsilon(TWO, 4, 1), 4),
    (SubsetSelection.for_epsilon(ONE, 4, 2), 3),
    (SubsetSelection.for_epsilon(TWO, 4, 2), 3),
    (SubsetSelection.for_epsilon(FOUR, 3, 2), 3),
    (ProjectiveGeometry.for_epsilon(ONE, 7, 2, 3), 2),
    (ProjectiveGeometry.for_epsilon(TWO, 5, 2, 3), 2),
    (SquareWave.for_epsilon(ONE, 4, 2), 4),
    (SquareWave.for_epsilon(TWO, 5, 2), 3),
    (SquareWave.for_epsilon(TWO, 5, 3), 3),
]


Small = SubsetSelection | ProjectiveGeometry | SquareWave
each_small = pytest.mark.parametrize(("mechanism", "most"), SMALL, ids=str)


def overlap_of(mechanism: Small) -> tuple[Overlap, ...]:
    if not isinstance(mechanism, SquareWave):
        return handler_of(mechanism).overlaps()
    apart = min(mechanism.width, mechanism.levels - mechanism.width)
    share = Fraction(mechanism.width, mechanism.levels)
    return (Overlap(share, Fraction(apart, mechanism.levels), mechanism.P),)


@each_small
def test_both_bounds_hold_for_every_small_batch(mechanism: Small, most: int) -> None:
    """Over all datasets of 2 to 4 reports, enumerated: [BBGN19] and [FMT21]."""
    rows, ratio = rows_of(mechanism), float(exp_upper(mechanism.epsilon))
    windowed = isinstance(mechanism, SquareWave)
    pairs = list(permutations(range(mechanism.inputs), 2)) if windowed else [(0, 1)]
    for n, at in product(range(2, most + 1), (Fraction(0), mechanism.epsilon / 2)):
        exact = exact_delta(rows, n, at, pairs)

        assert exact <= blanket_delta(overlap_of(mechanism), n, float(at))
        assert exact <= clones_delta(ratio, n, float(at))


@pytest.mark.parametrize(("mechanism", "most"), SMALL[:5], ids=str)
def test_the_comparison_sees_an_understated_epsilon(mechanism: SubsetSelection, most: int) -> None:
    """The blanket of 0.7 epsilon is exceeded by the exact delta of epsilon."""
    weaker, at = with_epsilon(mechanism, LOWER), mechanism.epsilon / 5
    exact = exact_delta(rows_of(mechanism), most, at, [(0, 1)])

    assert exact > blanket_delta(handler_of(weaker).overlaps(), most, float(at))


def test_a_report_that_draws_one_of_two_mechanisms_is_bounded_too() -> None:
    two, three = SubsetSelection.for_epsilon(TWO, 2, 1), SubsetSelection.for_epsilon(TWO, 3, 1)
    first, second = rows_of(two), rows_of(three)
    rows = [[p / 2 for p in (*first[x], *second[x])] for x in range(2)]
    both = handler_of(two).overlaps() + handler_of(three).overlaps()
    for n in (2, 3):
        exact = exact_delta(rows, n, ONE / 2, [(0, 1), (1, 0)])

        assert 0 < exact <= blanket_delta(both, n, 0.5)


def test_the_pair_that_overlaps_least_bounds_every_pair() -> None:
    own, P = Fraction(1, 4), Fraction(1, 2)
    bounds = [
        blanket_delta((Overlap(own, Fraction(alone, 100), P),), 50, 0.1) for alone in (1, 5, 15, 25)
    ]

    assert bounds == sorted(bounds)


@each_small
def test_an_overlap_is_that_of_the_sets(mechanism: Small, most: int) -> None:
    rows = rows_of(mechanism)
    sets = [{m for m, p in enumerate(row) if p == max(row)} for row in rows]
    (pair,) = overlap_of(mechanism)

    assert most > 1
    assert pair.own == Fraction(len(sets[0]), len(rows[0]))
    assert pair.alone == Fraction(max(len(sets[0] - each) for each in sets), len(rows[0]))
    assert pair.ratio == max(rows[0]) / min(rows[0]) <= exp_lower(mechanism.epsilon)
    assert pair.blanket <= sum(map(min, zip(*rows, strict=True)))


def test_sets_that_cannot_be_are_refused() -> None:
    for own, alone, P in [("1/2", "0", "1/2"), ("1/4", "1/2", "1/2"), ("1/2", "1/4", "1/4")]:
        with pytest.raises(ValueError, match="no two sets overlap"):
            Overlap(Fraction(own), Fraction(alone), Fraction(P))


# -- published values ------------------------------------------------------------------------------


def test_clones_lie_in_the_published_interval() -> None:
    """FMT21's own implementation: n = 1e5, epsilon 4, delta 1e-6 is within [.16754, .17279]."""
    assert Fraction("0.16754") <= clones_epsilon(FOUR, 10**5, DELTA) <= Fraction("0.17279")


@pytest.mark.parametrize(
    ("epsilon", "reports", "expected"),
    [("0.5", 10**3, 0.0705), ("4", 10**3, 3.99), ("2", 10**4, 0.155), ("1", 10**5, 0.0153)],
)
def test_clones_give_the_known_values(epsilon: str, reports: int, expected: float) -> None:
    """The numeric bound at delta = 1e-6, to three digits."""
    assert isclose(clones_epsilon(Fraction(epsilon), reports, DELTA), expected, rel_tol=0.005)


@pytest.mark.parametrize(
    ("k", "epsilon", "reports", "expected"),
    [
        (2, "1", 10**3, 0.149),
        (2, "4", 10**4, 0.411),
        (2, "4", 10**6, 0.0343),
        (10, "4", 10**3, 1.53),
        (1000, "4", 10**3, 0.940),
        (1000, "2", 10**5, 0.0228),
        (1000, "4", 10**6, 0.0236),
    ],
)
def test_the_blanket_gives_the_known_values(
    k: int, epsilon: str, reports: int, expected: float
) -> None:
    """At delta = 1e-6, within 1.5 %: the plane that is shipped is not the optimum it stands for."""
    found = blanket_epsilon(select_mechanism(k, epsilon).mechanism, reports, DELTA)

    assert isclose(found, expected, rel_tol=0.015)


@given(
    values=st.lists(st.floats(-30, 30), min_size=1, max_size=5),
    weight=st.floats(0.01, 0.99),
    nines=st.integers(1, 6),
)
def test_no_relevant_coefficient_is_missing(values: list[float], weight: float, nines: int) -> None:
    """Of a distribution around 0, as all are: most of its reports are not in the blanket."""
    shares = np.array([1 - weight, *(weight / len(values) for _ in values)])
    around = np.array([0.0, *values])
    grid = GridValues.split(around - around @ shares, shares, 16384)
    every, size = grid.transform(8193), 1 - 10.0**-nines
    kept = grid.terms_above(size)

    assert np.allclose(grid.transform(20), every[:20])
    assert (np.abs(every[kept:]) < size + 1e-12).all()


# -- what is returned ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism",
    [
        select_mechanism(2, 1).mechanism,
        select_mechanism(1000, 1).mechanism,
        MeanMechanism.for_epsilon(ONE),
        DistributionMechanism.for_epsilon(ONE),
        RangeTree.for_epsilon(ONE),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_for_our_mechanisms_the_blanket_is_the_best_bound(mechanism: Randomizer) -> None:
    bound = amplified(mechanism, 10**4, DELTA)

    assert bound.epsilon == bound.blanket < bound.clones < bound.closed < bound.local == 1
    assert bound.closed == shuffle_amplification(ONE, 10**4, DELTA)


def test_a_result_is_the_least_that_the_bound_shows() -> None:
    mechanism = select_mechanism(10, 2).mechanism
    found = blanket_epsilon(mechanism, 1000, DELTA)

    assert blanket_delta(handler_of(mechanism).overlaps(), 1000, float(found)) <= DELTA
    assert blanket_delta(handler_of(mechanism).overlaps(), 1000, float(found) - 1e-6) > DELTA


@pytest.mark.parametrize("reports", [0, 1])
def test_with_nobody_to_hide_among_the_local_epsilon_is_left(reports: int) -> None:
    assert amplified(select_mechanism(3, 1).mechanism, reports, DELTA) == Amplified(
        reports=reports, delta=DELTA, local=ONE, closed=ONE, clones=ONE, blanket=ONE
    )


@pytest.mark.parametrize("reports", [2, 10**6])
def test_from_the_local_epsilon_on_both_deltas_are_0(reports: int) -> None:
    overlaps = handler_of(select_mechanism(4, 1).mechanism).overlaps()

    assert blanket_delta(overlaps, reports, 1.0001) == 0
    assert clones_delta(float(exp_lower(ONE)), reports, 1.0001) == 0


def five(epsilon: Fraction) -> Randomizer:
    return select_mechanism(5, epsilon).mechanism


def test_the_loudest_local_epsilon_holds_and_a_thousandth_more_does_not() -> None:
    """For a batch of a thousand, at epsilon 1; in small batches a shuffler costs nothing."""
    local = largest_local_epsilon(five, 1000, ONE, DELTA)

    assert local > 3
    assert keeps_epsilon(five(local), 1000, ONE, DELTA)
    assert not keeps_epsilon(five(local + Fraction(1, 1000)), 1000, ONE, DELTA)
    assert [largest_local_epsilon(five, reports, ONE, DELTA) for reports in (1, 5)] == [1, 1]
