"""Covers give what a definition promises: against enumerated batches, and the published table."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from math import comb, exp, isclose

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.privacy.amplification.blanket import BlanketReport, mean_excess
from veilcount_analysis.privacy.shuffled import (
    best_guess,
    cover_delta,
    cover_epsilon,
    guess_after_unlucky,
    honest_epsilon,
    least_covers,
    shuffled_error,
)
from veilcount_analysis.privacy.shuffled.honest import honest_delta
from veilcount_analysis.privacy.trust_models import Quantity
from veilcount_shared import select_mechanism
from veilcount_shared.epsilon import exp_upper
from veilcount_shared.errors import TrustModelError
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    HashedStrings,
    MeanMechanism,
    Moments,
    ProjectiveGeometry,
    Randomizer,
    RangeTree,
    SubsetSelection,
    TrendMechanism,
)

from ..aggregator.exact_rows import Row, rows_of
from .test_amplification import Distribution, joined

HALF, ONE, TWO, FOUR = Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4)
DELTA = Fraction(1, 10**6)


def cells(k: int, epsilon: Fraction = FOUR) -> SubsetSelection:
    return SubsetSelection.for_epsilon(epsilon, k, 1)


# -- the published table ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "needed"),
    [
        (3, [(53, 184), (90, 300), (110, 362)]),
        (4, [(56, 199), (110, 366), (142, 466)]),
        (6, [(55, 207), (137, 464), (199, 654)]),
        (9, [(47, 197), (160, 551), (269, 888)]),
        (17, [(32, 153), (166, 619), (390, 1_311)]),
        (33, [(21, 101), (130, 556), (471, 1_667)]),
    ],
)
def test_values_need_so_many_covers(k: int, needed: list[tuple[int, int]]) -> None:
    """At a report's epsilon of 2, 3 and 4, for a central one of 1 and of 1/2."""
    mechanisms = [cells(k, Fraction(epsilon)) for epsilon in (2, 3, 4)]
    covers = [tuple(least_covers(m, at, DELTA) for at in (ONE, HALF)) for m in mechanisms]

    assert covers == needed


@pytest.mark.parametrize(
    ("mechanism", "needed"),
    [
        (MeanMechanism.for_epsilon(FOUR), 142),
        (DistributionMechanism.for_epsilon(FOUR), 400),
        (RangeTree.for_epsilon(FOUR), 336),
        (Moments.for_epsilon(FOUR, 3), 142),
        (HashedStrings.for_epsilon(FOUR, 20, 2), 463),
        (HashedStrings.for_epsilon(FOUR, 12, 5), 428),
        (SubsetSelection.for_epsilon(FOUR, 256, 4), 430),
        (SubsetSelection.for_epsilon(FOUR, 1_024, 16), 428),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_kinds_need_so_many_covers_and_one_less_is_too_few(
    mechanism: Randomizer, needed: int
) -> None:
    overlaps = handler_of(mechanism).overlaps()

    assert least_covers(mechanism, ONE, DELTA) == needed
    assert cover_delta(overlaps, needed, 1.0) <= DELTA < cover_delta(overlaps, needed - 1, 1.0)
    assert (
        cover_epsilon(mechanism, needed, DELTA) <= ONE < cover_epsilon(mechanism, needed - 1, DELTA)
    )


def test_the_reports_own_epsilon_needs_no_covers_and_rounding_errors_count_none() -> None:
    assert least_covers(cells(4), FOUR, DELTA) == 0
    assert FOUR >= cover_epsilon(cells(4), 0, DELTA) > Fraction("3.999")
    with pytest.raises(ValueError, match="below what rounding leaves"):
        least_covers(cells(4), ONE, Fraction(1, 10**30))


@pytest.mark.parametrize(
    ("k", "errors"),
    [
        (3, [0.73, 3.81, 0.28, 0.168, 1.21]),
        (4, [0.77, 4.35, 0.28, 0.179, 1.37]),
        (6, [0.82, 4.98, 0.28, 0.190, 1.57]),
        (9, [0.85, 5.35, 0.28, 0.199, 1.69]),
        (17, [0.88, 5.67, 0.28, 0.211, 1.79]),
        (33, [0.91, 5.86, 0.28, 0.226, 1.85]),
    ],
)
def test_errors_with_covers_in_the_local_model_and_of_a_curator(
    k: int, errors: list[float]
) -> None:
    """In %, of 1,000 reports (the curator last) and of 10,000."""
    covers, quantity = least_covers(cells(k), ONE, DELTA), Quantity.of_values(k)
    shuffled = [100 * shuffled_error(cells(k), n, covers) for n in (1_000, 10_000)]
    local = [100 * quantity.local(ONE, n, 0.95).rmse for n in (1_000, 10_000)]
    curator = 100 * quantity.central(ONE, 1_000, 0.95).rmse

    found = [shuffled[0], local[0], curator, shuffled[1], local[1]]
    assert found == [pytest.approx(error, abs=0.006) for error in errors]


# -- small batches, enumerated ---------------------------------------------------------------------


def uniform(size: int) -> Row:
    return [Fraction(1, size)] * size


def covered(rows: Sequence[Row], covers: int, cover: Row) -> Distribution:
    """The distribution of the histogram of covers alone."""
    distribution: Distribution = {(0,) * len(rows[0]): ONE}
    for _ in range(covers):
        distribution = joined(distribution, cover)
    return distribution


def exact_deltas(
    rows: Sequence[Row], n: int, epsilon: Fraction, covers: int, cover: Row
) -> list[Fraction]:
    """Delta for every data set of n reports among covers, and every pair of one input of it."""
    e, deltas = exp_upper(epsilon), []
    for others in combinations_with_replacement(range(len(rows)), n - 1):
        distribution = covered(rows, covers, cover)
        for other in others:
            distribution = joined(distribution, rows[other])
        batches = [joined(distribution, row) for row in rows]
        for one, two in permutations(batches, 2):
            deltas.append(sum((max(one[c] - e * two[c], Fraction(0)) for c in one), Fraction(0)))
    return deltas


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("covers", [0, 1, 2, 3])
def test_no_small_batch_reveals_more_than_covers_alone_or_than_its_honest_reports(
    k: int, covers: int
) -> None:
    """All data sets of up to four reports; alone, a report is exactly as hidden as computed."""
    mechanism = cells(k, ONE)
    rows, overlaps = rows_of(mechanism), handler_of(mechanism).overlaps()
    for n, at in product((1, 2, 3, 4), (Fraction(0), Fraction(1, 4), HALF)):
        worst = float(max(exact_deltas(rows, n, at, covers, uniform(k))))
        bound = cover_delta(overlaps, covers, float(at))

        assert worst <= bound
        assert worst <= honest_delta(overlaps, n, covers, float(at))
        if n == 1:
            assert isclose(worst, bound, rel_tol=1e-6, abs_tol=1e-14)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_one_cover_too_few_is_seen_by_the_enumeration(k: int) -> None:
    mechanism = cells(k, ONE)
    overlaps = handler_of(mechanism).overlaps()
    exact = max(exact_deltas(rows_of(mechanism), 1, Fraction(1, 4), 2, uniform(k)))

    assert exact > cover_delta(overlaps, 3, 0.25)


@pytest.mark.parametrize(
    "mechanism",
    [
        SubsetSelection.for_epsilon(TWO, 4, 2),
        SubsetSelection.for_epsilon(ONE, 5, 2),
        ProjectiveGeometry.for_epsilon(TWO, 7, 2, 3),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_sets_that_overlap_are_bounded_closely(mechanism: SubsetSelection) -> None:
    rows, overlaps = rows_of(mechanism)[:2], handler_of(mechanism).overlaps()
    for covers in (1, 2):
        exact = max(exact_deltas(rows, 1, HALF, covers, uniform(len(rows[0]))))

        assert exact <= cover_delta(overlaps, covers, 0.5) <= 1.01 * float(exact)


def test_covers_of_a_drawn_part_are_bounded_closely() -> None:
    """A report and a cover draw one of two mechanisms alike, and name it."""
    two, three = cells(2, TWO), cells(3, TWO)
    rows = [[p / 2 for p in (*rows_of(two)[x], *rows_of(three)[x])] for x in range(2)]
    cover = [Fraction(1, 4)] * 2 + [Fraction(1, 6)] * 3
    overlaps = handler_of(two).overlaps() + handler_of(three).overlaps()
    for covers in (1, 2, 3):
        exact = max(exact_deltas(rows, 1, HALF, covers, cover))

        assert exact <= cover_delta(overlaps, covers, 0.5) <= 1.01 * float(exact)


def clones_claim(k: int, epsilon: Fraction, n: int, at: Fraction) -> float:
    """What "stronger clones", the variation ratio, claims of k-ary randomized response.

    Each other report is a clone of either value with probability 1 / (e^epsilon + k - 1), by a fair
    coin, whatever its own value is.
    """
    ratio = exp(epsilon)
    share = 1 / (ratio + k - 1)
    one, two = dict[tuple[int, int], float](), dict[tuple[int, int], float]()
    outcomes = [((1, 0), ratio * share, share), ((0, 1), share, ratio * share)]
    outcomes.append(((0, 0), 1 - (1 + ratio) * share, 1 - (1 + ratio) * share))
    for clones, first in ((c, a) for c in range(n) for a in range(c + 1)):
        weight = float(binom.pmf(clones, n - 1, 2 * share)) * comb(clones, first) / 2**clones
        for (x, y), under_one, under_two in outcomes:
            key = (first + x, clones - first + y)
            one[key] = one.get(key, 0) + weight * under_one
            two[key] = two.get(key, 0) + weight * under_two
    return float(sum(max(one[key] - exp(at) * two[key], 0) for key in one))


def test_a_bound_by_the_variation_ratio_is_caught() -> None:
    """Three values, epsilon 1, four reports: it claims .06994 where a data set has .07079."""
    mechanism = cells(3, ONE)
    exact = float(max(exact_deltas(rows_of(mechanism), 4, HALF, 0, uniform(3))))

    assert exact == pytest.approx(0.07079, abs=1e-5)
    assert clones_claim(3, ONE, 4, HALF) == pytest.approx(0.06994, abs=1e-5)
    assert exact <= honest_delta(handler_of(mechanism).overlaps(), 4, 0, 0.5)


# -- guesses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "covers", "guess"), [(2, 75, 0.544), (4, 142, 0.544), (33, 471, 0.546)]
)
def test_the_best_guess_among_covers(k: int, covers: int, guess: float) -> None:
    assert round(best_guess(cells(k), covers), 3) == guess


@pytest.mark.parametrize(("k", "guess"), [(2, 0.982), (3, 0.973), (4, 0.965)])
def test_without_covers_a_server_that_floods_a_batch_guesses_nearly_always(
    k: int, guess: float
) -> None:
    assert round(best_guess(cells(k), 0), 3) == guess


def test_the_best_guess_of_two_values_is_the_enumerated_one() -> None:
    """Of 75 covers, in Fractions: half of what the two counts' distributions differ by."""
    p, covers = cells(2).P, 75
    none = Fraction(0)
    ways = [Fraction(comb(covers, a), 2**covers) for a in range(covers + 1)]
    one = [p * x + (1 - p) * y for x, y in zip([none, *ways], [*ways, none], strict=True)]
    distance = sum(abs(x - y) for x, y in zip(one, reversed(one), strict=True)) / 2

    assert isclose(best_guess(cells(2), covers), (1 + distance) / 2, rel_tol=1e-7)


def test_after_an_unlucky_outcome_more_is_allowed() -> None:
    assert round(guess_after_unlucky(1.0), 3) == 0.731


def flat_report(tree: RangeTree, epsilon: float) -> BlanketReport:
    """The comparison of one message, where covers are drawn from all messages alike."""
    e, values, weights = exp(epsilon), [], []
    for level in tree.levels:
        (overlap,) = handler_of(level).overlaps()
        ratio, own, alone = float(overlap.ratio), float(overlap.own), float(overlap.alone)
        share = level.messages / tree.messages
        scale = share * len(tree.levels) * (ratio * own + 1 - own)
        outcomes = (ratio - e, 1 - ratio * e, -(e - 1) * ratio, -(e - 1))
        values += [outcome / scale for outcome in outcomes]
        weights += [share * part for part in (alone, alone, own - alone, 1 - own - alone)]
    return BlanketReport(np.array(values), np.array(weights))


def top_level_delta(tree: RangeTree, covers: int, epsilon: float) -> float:
    """Delta of a report on the top level, where so few of these covers are."""
    top = tree.levels[0]
    overlaps, numbers = handler_of(top).overlaps(), range(12)
    chances = binom.pmf(numbers, covers, top.messages / tree.messages)
    deltas = [cover_delta(overlaps, number, epsilon) for number in numbers]
    return float(chances @ np.array(deltas))


def test_covers_of_ranges_that_are_uniform_over_all_messages_hide_nobody() -> None:
    """Of 336 of them .6 are on the top level, which one report in four is on."""
    tree = RangeTree.for_epsilon(FOUR)

    assert mean_excess(flat_report(tree, 1.0), 337) > 0.17
    assert (1 + top_level_delta(tree, 336, 0.0)) / 2 == pytest.approx(0.907, abs=1e-3)
    assert top_level_delta(tree, 336, 1.0) / 4 == pytest.approx(0.193, abs=1e-3)
    assert best_guess(tree, 336) < 0.55


# -- honest reports, and the choice of a mechanism -------------------------------------------------


def test_honest_reports_lower_epsilon_and_never_raise_it() -> None:
    shown = [honest_epsilon(cells(4), honest, 142, DELTA) for honest in (1, 100, 1_000, 10_000)]

    assert shown == sorted(shown, reverse=True)
    assert ONE >= shown[0] > Fraction("0.99")
    assert float(shown[2]) == pytest.approx(0.79, abs=0.02)


@pytest.mark.parametrize("n", [1_000, 10_000])
@pytest.mark.parametrize("k", [4, 33, 64, 100, 256, 1_024])
def test_what_a_device_selects_is_within_2_percent_of_the_best_with_covers(k: int, n: int) -> None:
    """So `select_mechanism` needs no other rule for shuffled collections."""

    def error(mechanism: Randomizer) -> float:
        return shuffled_error(mechanism, n, least_covers(mechanism, ONE, DELTA))

    sizes = [w for w in (1, 2, 3, 4, 5, 6, 8, 12, 14, 16, 18, 20, 24) if 2 * w < k]
    errors = {w: error(SubsetSelection.for_epsilon(FOUR, k, w)) for w in sizes}
    selected = error(select_mechanism(k, FOUR).mechanism)

    assert selected <= 1.02 * min(errors.values())
    if k >= 256:
        assert 1.4 < (errors[1] / selected) ** 2 < 5.1, "one member a subset is no choice there"


def test_a_trend_has_no_error_with_covers() -> None:
    with pytest.raises(TrustModelError, match="no covers"):
        shuffled_error(TrendMechanism.for_epsilon(ONE, 12, 3), 1_000, 10)


@pytest.mark.parametrize(
    "mechanism",
    [
        cells(4),
        SubsetSelection.for_epsilon(FOUR, 16, 2),
        MeanMechanism.for_epsilon(FOUR),
        DistributionMechanism.for_epsilon(FOUR),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_the_variance_of_a_cover_is_that_of_a_uniform_message(
    mechanism: SubsetSelection | MeanMechanism | DistributionMechanism,
) -> None:
    """Decoded: a subset's support of a value, a level's number; found by every message."""
    decoded = decoded_messages(mechanism)

    assert handler_of(mechanism).cover_variance() == pytest.approx(float(np.var(decoded)), rel=1e-6)


def decoded_messages(
    mechanism: SubsetSelection | MeanMechanism | DistributionMechanism,
) -> NDArray[np.float64]:
    if isinstance(mechanism, SubsetSelection):
        messages = (m for m in range(1 << mechanism.bits) if mechanism.valid(m))
        supports = [float(0 in mechanism.members(message)) for message in messages]
        return np.array(supports) / float(mechanism.P - mechanism.Q)
    if isinstance(mechanism, MeanMechanism):
        return np.array(mechanism.decoded, np.float64)
    levels = np.arange(mechanism.messages)
    rows = np.array(mechanism.transition_matrix, np.float64)
    slope, _ = np.polyfit(np.arange(mechanism.inputs) / mechanism.inputs, rows @ levels, 1)
    decoded: NDArray[np.float64] = levels / slope
    return decoded
