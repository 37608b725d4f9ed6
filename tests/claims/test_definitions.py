"""Definitions: epsilon, delta, neighbours, post-processing and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import chain, combinations, pairwise, product
from typing import Any

import numpy as np

from veilcount_analysis.mechanisms.handler import HANDLERS
from veilcount_analysis.releases import part_noise
from veilcount_shared import Collection
from veilcount_shared.composition import group_privacy, guessing_probability
from veilcount_shared.domain import GRID
from veilcount_shared.epsilon import exp_lower
from veilcount_shared.guessing import two_values_epsilon
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    DrawnBit,
    HashedStrings,
    Identity,
    MeanMechanism,
    Moments,
    PairTables,
    ProjectiveGeometry,
    Randomizer,
    RangeTree,
    SetSelection,
    SquareWave,
    SubsetSelection,
    TrendMechanism,
)
from veilcount_shared.mechanisms.square_wave import find_bucket
from veilcount_shared.models.central import LEAST_DELTA
from veilcount_shared.randomness import RandomSource

from ..aggregator.releases.release_fixtures import (
    ADD_REMOVE,
    SUBSTITUTE,
    ask,
    collection,
    true_values,
    whole,
)
from ..enumeration import enumerate_distribution, max_likelihood_ratio
from ..properties.test_trend import sent_over_time
from .claim_harness import claim

ONE = Fraction(1)
ZERO = Fraction(0)
MECHANISMS = "shared/veilcount_shared/mechanisms/interface.py"
TREE = "shared/veilcount_shared/mechanisms/range_tree.py"
EPSILON = "shared/veilcount_shared/epsilon.py"
COMPOSITION = "shared/veilcount_shared/composition.py"
DELTA = "shared/veilcount_shared/models/central.py"
GUESSING = "shared/veilcount_shared/guessing.py"

FEW = SubsetSelection.for_epsilon(ONE, 4, 2)
BIT = SubsetSelection.for_epsilon(ONE, 2, 1)

REGISTERED: tuple[tuple[Randomizer, tuple[int, ...]], ...] = (
    (SubsetSelection.for_epsilon(ONE, 5, 1), tuple(range(5))),
    (SubsetSelection.for_epsilon(ONE, 6, 2), tuple(range(6))),
    (ProjectiveGeometry.for_epsilon(ONE, 7, 2, 3), tuple(range(7))),
    (ProjectiveGeometry.for_epsilon(ONE, 13, 3, 3), tuple(range(13))),
    (MeanMechanism.for_epsilon(ONE), (0, 1, GRID // 3, GRID // 2, GRID)),
    (DistributionMechanism.for_epsilon(ONE), (0, GRID // 2, GRID)),
    (RangeTree.for_epsilon(ONE), (0, GRID // 3, GRID)),
    (HashedStrings.for_epsilon(ONE, 2, 2), (0, 5, 6, 15)),
    (Moments.for_epsilon(ONE, 2), (0, GRID, GRID * (GRID + 1), (GRID + 1) ** 2 - 1)),
    (PairTables.for_epsilon(ONE, (2, 2, 3)), tuple(range(12))),
    (SetSelection.for_epsilon(ONE, 4, 2), tuple(x for x in range(16) if x.bit_count() <= 2)),
    (DrawnBit.for_epsilon(ONE, 3), tuple(range(8))),
    (TrendMechanism.for_epsilon(ONE, 3, 1), tuple(range(8))),  # values over three periods
)


def sent(mechanism: Randomizer | SquareWave, x: int) -> dict[Any, Fraction]:
    """Return the distribution of an input's message, by the device's own code.

    Of a trend, of all messages over time: its input is one value a period, as bits.
    """
    if isinstance(mechanism, TrendMechanism):
        values = tuple(x >> period & 1 for period in range(mechanism.periods))
        return dict(enumerate_distribution(partial(sent_over_time, mechanism, values)))
    return dict(enumerate_distribution(lambda randomness: mechanism.randomize(x, randomness)))


@claim(MECHANISMS, ONE, ONE - Fraction(1, 100))
def test_every_mechanism_keeps_its_epsilon(stated: Fraction, *, holds: bool) -> None:
    """Whatever the input, no message of any mechanism is more than e^epsilon times as likely as
    under another input [Kasiviswanathan et al. 2011].

    Enumerated in Fractions over all random outcomes; each mechanism uses nearly all of epsilon.
    `Identity`, of a trusted curator, promises none.
    """
    shown = {type(mechanism) for mechanism, _ in REGISTERED} | {Identity}
    assert shown == set(HANDLERS), "a new mechanism needs its epsilon enumerated here"
    for mechanism, inputs in REGISTERED:
        ratio = max_likelihood_ratio([sent(mechanism, x) for x in inputs])

        assert (ratio <= exp_lower(stated)) == holds


def one_level(tree: RangeTree, grid: int) -> dict[Any, Fraction]:
    return sent(tree, grid)


def two_levels(tree: RangeTree, grid: int) -> dict[Any, Fraction]:
    bucket = find_bucket(grid)
    return joint(*(sent(tree.levels[level], tree.node(level, bucket)) for level in (0, 1)))


@claim(TREE, one_level, two_levels)
def test_a_tree_keeps_epsilon_once_for_all_levels(
    stated: Callable[[RangeTree, int], dict[Any, Fraction]], *, holds: bool
) -> None:
    """Of a tree of ranges a person reports one level, drawn independently of the value, so the
    whole report costs epsilon once and not once a level [Cormode, Kulkarni & Srivastava 2019].

    Planted: two levels in one report.
    """
    tree = RangeTree.for_epsilon(ONE)
    ratio = max_likelihood_ratio([stated(tree, grid) for grid in (0, GRID // 2, GRID)])

    assert (ratio <= exp_lower(ONE)) == holds


def events(messages: list[int]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(messages, size) for size in range(1, len(messages) + 1))


@claim(EPSILON, ONE, ONE - Fraction(1, 100))
def test_a_bound_on_messages_is_a_bound_on_events(stated: Fraction, *, holds: bool) -> None:
    """A bound on every single message is the same bound on every set of messages, which is what
    the definition asks [Dwork & Roth 2014, definition 2.4]."""
    rows = [sent(FEW, x) for x in range(FEW.k)]
    worst = max(
        sum(one[m] for m in event) / sum(two[m] for m in event)
        for event in events(list(rows[0]))
        for one, two in product(rows, repeat=2)
    )

    assert (worst <= exp_lower(stated)) == holds


def blind(message: int, x: int, randomness: RandomSource) -> int:
    return message % 3 if randomness.bernoulli(1, 3) else randomness.below(2)


def peeking(message: int, x: int, randomness: RandomSource) -> int:
    return x % 2 if randomness.bernoulli(3, 4) else message % 2


@claim(MECHANISMS, blind, peeking)
def test_post_processing_costs_nothing(
    stated: Callable[[int, int, RandomSource], int], *, holds: bool
) -> None:
    """Whatever is computed from a message without a further look at the value keeps epsilon
    [Dwork & Roth 2014, proposition 2.1]."""
    processed = [
        enumerate_distribution(
            lambda randomness, x=x: stated(FEW.randomize(x, randomness), x, randomness)  # type: ignore[misc] # mypy infers no x
        )
        for x in range(FEW.k)
    ]

    assert (max_likelihood_ratio(processed) <= exp_lower(ONE)) == holds


@claim(COMPOSITION, ONE, Fraction(9, 10), Fraction(11, 10))
def test_delta_at_epsilon_zero_is_total_variation(stated: Fraction, *, holds: bool) -> None:
    """The delta that is left at epsilon 0 is the distance in total variation, and the best guess
    between two inputs is right with probability (1 + delta) / 2 [Kairouz, Oh & Viswanath 2015]."""
    one, two = (sent(BIT, x) for x in (0, 1))
    event = max(sum(one[m] - two[m] for m in event) for event in events(list(one)))
    delta = sum((max(one[m] - two[m], ZERO) for m in one), ZERO)

    assert delta == event
    assert (abs(guessing_probability(stated, 1) - (1 + delta) / 2) < Fraction(1, 10**8)) == holds


@claim(COMPOSITION, group_privacy, lambda epsilon, _: epsilon)
def test_a_group_of_k_is_promised_k_epsilon(
    stated: Callable[[Fraction, int], Fraction], *, holds: bool
) -> None:
    """What k people answer together moves the odds of an outcome by e^(k epsilon) at most, and by
    no less where all of them change [Dwork & Roth 2014, theorem 2.2]."""
    single = [sent(BIT, x) for x in (0, 1)]
    for k in (2, 3):
        together = max_likelihood_ratio([joint(*[each] * k) for each in single])

        assert (exp_lower(stated(ONE, k) - Fraction(1, 1000)) < together) or not holds
        assert (together <= exp_lower(stated(ONE, k))) == holds


def leaking(start: list[Fraction], e: Fraction, delta: Fraction) -> list[Fraction]:
    """Return the farthest distribution at (epsilon, delta): a leak, what grows, and the others."""
    leak, grown = e * start[0] + delta, e * start[1]
    return [leak, grown, 1 - leak - grown]


def hockey_stick(one: list[Fraction], other: list[Fraction], e: Fraction) -> Fraction:
    """Return the delta that one distribution needs against another at e^epsilon."""
    return sum((max(p - e * q, ZERO) for p, q in zip(one, other, strict=True)), ZERO)


@claim(COMPOSITION, lambda e, k: (e**k - 1) / (e - 1), lambda _, k: Fraction(k))
def test_a_group_multiplies_delta_by_more_than_its_size(
    stated: Callable[[Fraction, int], Fraction], *, holds: bool
) -> None:
    """What k changes do together, each at (epsilon, delta), needs at k epsilon the delta times
    (e^(k epsilon) - 1) / (e^epsilon - 1), and a chain reaches it [Vadhan 2017, lemma 2.2].

    Planted: k times delta.
    """
    e, delta = exp_lower(Fraction(1, 2)), Fraction(1, 100)
    reached = [[ZERO, Fraction(1, 10), Fraction(9, 10)]]
    for _ in range(3):
        reached.append(leaking(reached[-1], e, delta))
    for one, two in pairwise(reached):
        assert max(hockey_stick(one, two, e), hockey_stick(two, one, e)) == delta
    for k in (2, 3):
        assert abs(exp_lower(group_privacy(Fraction(1, 2), k)) - e**k) < Fraction(1, 10**15)
        assert (hockey_stick(reached[k], reached[0], e**k) == delta * stated(e, k)) == holds


@claim(DELTA, 2, 1)
def test_a_delta_of_one_in_n_publishes_somebody(stated: int, *, holds: bool) -> None:
    """To publish each of n records with probability delta is (0, delta)-DP: at 1 / n somebody is
    published with 63 %, so delta is chosen near 1 / n^2, where nobody is but once in n
    [Kasiviswanathan & Smith 2014].

    The least delta of a definition is that of a million people. Planted: 1 / n.
    """
    n = 1000
    delta = Fraction(1, n**stated)
    one, two = ([delta * here, delta * (1 - here), 1 - delta] for here in (1, 0))
    published = 1 - (1 - delta) ** n

    assert hockey_stick(one, two, ONE) == delta
    assert Fraction(1, 10**12) == LEAST_DELTA
    assert round(1 - (1 - Fraction(1, n)) ** n, 2) == Fraction(63, 100)
    assert (published <= Fraction(1, n)) == holds


def joint(*distributions: dict[Any, Fraction]) -> dict[Any, Fraction]:
    """Return the distribution of independent outcomes."""
    result: dict[Any, Fraction] = {(): ONE}
    for distribution in distributions:
        result = {
            (*seen, outcome): chance * p
            for seen, chance in result.items()
            for outcome, p in distribution.items()
        }
    return result


@claim(GUESSING, two_values_epsilon, lambda _, epsilon: epsilon)
def test_add_remove_counts_twice_between_two_values(
    stated: Callable[[Collection, Fraction], Fraction], *, holds: bool
) -> None:
    """To change a value is to remove one record and to add another, so an add-remove epsilon
    counts twice between two values, a substitution's once [Kifer & Machanavajjhala 2011].

    The loss of a released histogram: what a change of value moves, over the noise's scale.
    """
    bounded = []
    for adjacency in (ADD_REMOVE, SUBSTITUTE):
        surveyed = collection(whole(-1, 1), adjacency)
        question = ask(surveyed, "histogram", 1)
        one, other = (true_values(question, np.eye(3, dtype=np.int64)[x])[0] for x in (0, 2))
        moved = sum(abs(a - b) for a, b in zip(one, other, strict=True))
        loss = moved / part_noise(question)[0].scale
        bounded.append(loss <= stated(surveyed, ONE) + Fraction(1, 10**9))

    assert all(bounded) == holds
