"""Amplification by shuffling: between what a batch reveals exactly and the local epsilon."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import exp

from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.privacy.amplification import (
    amplified,
    blanket_delta,
    blanket_epsilon,
    clones_delta,
    largest_local_epsilon,
)
from veilcount_shared.epsilon import exp_upper
from veilcount_shared.mechanisms import SubsetSelection

from ..aggregator.exact_rows import rows_of
from ..analysis.test_amplification import exact_delta
from .claim_harness import claim

ONE, TWO = Fraction(1), Fraction(2)
DELTA = Fraction(1, 10**6)
BLANKET = "aggregator/analysis/veilcount_analysis/privacy/amplification/blanket.py"
BOUNDS = "aggregator/analysis/veilcount_analysis/privacy/amplification/bounds.py"
SMALL = tuple(
    (SubsetSelection.for_epsilon(epsilon, k, 1), n)
    for epsilon in (ONE, TWO)
    for k, n in ((2, 4), (3, 3))
)
Bound = Callable[[SubsetSelection, int, float], float]


def by_blanket(mechanism: SubsetSelection, reports: int, epsilon: float) -> float:
    return blanket_delta(handler_of(mechanism).overlaps(), reports, epsilon)


def by_clones(mechanism: SubsetSelection, reports: int, epsilon: float) -> float:
    return clones_delta(float(exp_upper(mechanism.epsilon)), reports, epsilon)


def local_delta(mechanism: SubsetSelection, _: int, epsilon: float) -> float:
    """Return the delta of one report that nobody shuffles."""
    one, two = (map(float, row) for row in rows_of(mechanism)[:2])
    return sum(max(p - exp(epsilon) * q, 0) for p, q in zip(one, two, strict=True))


def by_division(mechanism: SubsetSelection, reports: int, epsilon: float) -> float:
    return local_delta(mechanism, reports, epsilon) / reports**2


def covers(bound: Bound) -> bool:
    """Whether a bound is never below the exact delta of a small batch, over all data sets."""
    return all(
        exact_delta(rows_of(mechanism), n, at, [(0, 1)]) <= bound(mechanism, n, float(at))
        for mechanism, n in SMALL
        for at in (Fraction(0), mechanism.epsilon / 2)
    )


@claim(BLANKET, by_blanket, by_division)
def test_the_privacy_blanket_is_a_bound(stated: Bound, *, holds: bool) -> None:
    """The bound of the privacy blanket lies at or above the exact delta of a shuffled batch
    [Balle, Bell, Gascon & Nissim 2019, lemma 5.3].

    Exactly, over all data sets of a few reports. Planted: the local delta over n^2.
    """
    assert covers(stated) == holds


@claim(BOUNDS, by_clones, by_division)
def test_hiding_among_the_clones_is_a_bound(stated: Bound, *, holds: bool) -> None:
    """The bound of hiding among the clones, for any local mechanism, lies at or above the exact
    delta of a shuffled batch [Feldman, McMillan & Talwar 2021, theorem 3.2]."""
    assert covers(stated) == holds


@claim(BOUNDS, 0.5, 0.25, 1.0)
def test_amplification_grows_with_the_root_of_n(stated: float, *, holds: bool) -> None:
    """Four times as many reports about halve the epsilon of a shuffled batch [Feldman,
    McMillan & Talwar 2021, theorem 3.1].

    The product's best bound lies below the local epsilon, too. Planted: a quarter, and no gain.
    """
    bit = SubsetSelection.for_epsilon(ONE, 2, 1)
    few, many = (amplified(bit, n, DELTA) for n in (10_000, 40_000))

    assert few.epsilon == min(few.closed, few.clones, few.blanket) < few.local
    assert (abs(float(many.epsilon / few.epsilon) - stated) < 0.05) == holds


@claim(BOUNDS, 1, 10_000)
def test_alone_nobody_hides(stated: int, *, holds: bool) -> None:
    """A batch of one report has the local epsilon: only other honest reports amplify [Cheu, Smith,
    Ullman, Zeber & Zhilyaev 2019]."""
    bit = SubsetSelection.for_epsilon(ONE, 2, 1)

    assert (blanket_epsilon(bit, stated, DELTA) == bit.epsilon) == holds


@claim(BOUNDS, ONE, TWO)
def test_a_shuffler_allows_a_larger_local_epsilon(stated: Fraction, *, holds: bool) -> None:
    """For the same epsilon of the batch, a device behind a shuffler of many may use a larger local
    epsilon than without [Erlingsson et al. 2019].

    The largest such epsilon keeps the batch's; planted is twice that.
    """
    local = largest_local_epsilon(
        lambda epsilon: SubsetSelection.for_epsilon(epsilon, 2, 1), 1000, ONE / 2, DELTA
    )
    kept = amplified(SubsetSelection.for_epsilon(local * stated, 2, 1), 1000, DELTA)

    assert local > ONE / 2
    assert (kept.epsilon <= ONE / 2) == holds
