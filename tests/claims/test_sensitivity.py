"""Sensitivity: how far one unit moves an answer, found by enumerating small data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise
from statistics import fmean, median_low

import numpy as np

from veilcount_analysis.releases import draw_release
from veilcount_analysis.releases.sensitivity import (
    count_sensitivity,
    histogram_sensitivity,
    rank_sensitivity,
    sum_sensitivity,
)
from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency
from veilcount_shared.periods import Unit

from ..aggregator.releases.release_fixtures import (
    ADD_REMOVE,
    SUBSTITUTE,
    ask,
    collection,
    exactly,
    true_values,
    whole,
)
from .claim_harness import COMPARISON, claim
from .exact_noise import laplace

SENSITIVITY = "aggregator/analysis/veilcount_analysis/releases/sensitivity.py"
MEAN = "aggregator/analysis/veilcount_analysis/releases/query_types/number_queries.py"
LOW, HIGH = -1, 2
Values = tuple[int, ...]


#: the unit is a month with one answer, or one of a day's three events
UNITS = ((Unit.MONTH, 1), (Unit.EVENT, 3))


def neighbours(adjacency: Adjacency | None) -> Iterator[tuple[Values, Values]]:
    """Yield all pairs of neighbouring data sets with at most two answers more."""
    inputs = range(HIGH - LOW + 1)
    changes: list[tuple[Values, Values]] = [((x,), (y,)) for x in inputs for y in inputs]
    if adjacency is ADD_REMOVE:
        changes = [((), (x,)) for x in inputs]
    for size in range(3):
        for rest in combinations_with_replacement(inputs, size):
            yield from (((*rest, *one), (*rest, *other)) for one, other in changes)


def measured(query: object, surveyed: Collection, part: int = 0) -> int:
    """Return the largest L1 distance between the query's true values of two neighbours."""
    question = ask(surveyed, query, 1)
    vectors: list[list[list[int]]] = [
        [
            true_values(
                question, np.bincount(np.array(inputs, np.int64), minlength=HIGH - LOW + 1)
            )[part]
            for inputs in pair
        ]
        for pair in neighbours(surveyed.adjacency)
    ]
    distances: list[int] = [sum(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in vectors]
    return max(distances)


def agrees(stated: Callable[[Collection], int], query: object) -> bool:
    """Whether the sensitivity is the largest distance that occurs, not less and not more."""
    surveyed = [
        collection(whole(LOW, HIGH), adjacency, unit=unit, per_day=answers)
        for adjacency in (ADD_REMOVE, SUBSTITUTE)
        for unit, answers in UNITS
    ]
    return all(measured(query, each) == stated(each) for each in surveyed)


@claim(SENSITIVITY, count_sensitivity, histogram_sensitivity, lambda each: each.per_day)
def test_a_count_moves_by_the_contributions(
    stated: Callable[[Collection], int], *, holds: bool
) -> None:
    """The count of those who fulfil a condition has sensitivity 1 for each answer of a unit,
    under add-remove and under substitution [Dwork & Roth 2014, example 3.1]."""
    assert agrees(stated, "age >= 1") == holds


@claim(SENSITIVITY, histogram_sensitivity, count_sensitivity)
def test_a_histogram_moves_by_one_or_two_for_each_answer(
    stated: Callable[[Collection], int], *, holds: bool
) -> None:
    """A histogram has L1 sensitivity 1 for each answer under add-remove and 2 under
    substitution, whatever the number of its cells [Dwork & Roth 2014, example 3.2]."""
    assert agrees(stated, "histogram") == holds


@claim(
    SENSITIVITY,
    lambda surveyed: sum_sensitivity(surveyed, LOW, HIGH),
    lambda _: HIGH - LOW,
    lambda _: max(abs(LOW), abs(HIGH)),
)
def test_a_sum_moves_by_its_largest_term_or_its_range(
    stated: Callable[[Collection], int], *, holds: bool
) -> None:
    """A bounded sum has the sensitivity max(abs low, abs high) under add-remove and high - low
    under substitution [Li, Lyu, Su & Yang 2016]."""
    assert agrees(stated, "sum") == holds


@claim(MEAN, HIGH - LOW, 2 * (HIGH - LOW))
def test_the_sums_of_a_mean_move_by_the_range_together(stated: int, *, holds: bool) -> None:
    """Where n is private a mean follows from the sums of all distances from the low end and from
    the high end, which one answer moves by the range together, so that each has noise of the whole
    of epsilon [Dwork, McSherry, Nissim & Smith 2006].

    Planted: the range for each of the two, so that they would have to share epsilon.
    """
    surveyed = collection(whole(LOW, HIGH), ADD_REMOVE)
    (part,) = ask(surveyed, "mean", 1).parts

    assert (part.size, part.share, part.sensitivity) == (2, Fraction(1), HIGH - LOW)
    assert (measured("mean", surveyed) == stated) == holds


@claim(MEAN, (HIGH - LOW) ** 2, (HIGH - LOW) ** 2 + 2 * (HIGH - LOW))
def test_the_sums_of_a_variance_move_by_the_squared_range_together(
    stated: int, *, holds: bool
) -> None:
    """Where n is private a variance follows from the sums of a^2, 2 a b and b^2 over the distances
    a and b from both ends, which one answer moves by the squared range together, so that each has
    noise of the whole of epsilon [Dwork, McSherry, Nissim & Smith 2006].

    Planted: the count and the sum on top, whose part of epsilon the three need not share.
    """
    surveyed = collection(whole(LOW, HIGH), ADD_REMOVE)
    (part,) = ask(surveyed, "variance", 1).parts

    assert (part.size, part.share, part.sensitivity) == (3, Fraction(1), (HIGH - LOW) ** 2)
    assert (measured("variance", surveyed) == stated) == holds


def worst_change(statistic: Callable[[Sequence[int]], float], n: int) -> float:
    """Return how far one of n answers, each of 0 to 4, moves a statistic."""
    others = list(combinations_with_replacement(range(5), n - 1))
    return max(abs(statistic((*rest, 0)) - statistic((*rest, 4))) for rest in others)


@claim(SENSITIVITY, 4.0, 4 / 5)
def test_a_median_can_move_by_the_whole_range(stated: float, *, holds: bool) -> None:
    """One answer can move a median by the whole range, however many answered, but moves by 1 how
    many lie on either side: a median is found by these counts [Nissim, Raskhodnikova & Smith
    2007].

    Planted: the sensitivity of a mean, range / n.
    """
    halves = rank_sensitivity(collection(whole(0, 4), SUBSTITUTE), Fraction(1, 2))

    assert halves == 2  # in halves of an answer
    assert abs(worst_change(fmean, 5) - 4 / 5) < 1e-12
    assert (worst_change(median_low, 5) == stated) == holds


def released_variance(numbers: Sequence[int]) -> float:
    """Return the variance of numbers from 0 to 4 that a release without noise states."""
    question = ask(collection(whole(0, 4), SUBSTITUTE), "variance", 1)
    return draw_release(question, np.bincount(numbers, minlength=5), noise=exactly).values[0]


@claim(MEAN, lambda n: 16 * (n - 1) / n**2, lambda n: 16 / n**2, lambda n: 16 / 4)
def test_a_variance_moves_by_a_nth_of_the_squared_range(
    stated: Callable[[int], float], *, holds: bool
) -> None:
    """The variance of n answers, n public, has the sensitivity (n - 1) / n^2 times the squared
    range under substitution [D'Orazio, Honaker & King 2015]."""
    found = [abs(worst_change(released_variance, n) - stated(n)) < 1e-9 for n in (3, 4, 5)]

    assert all(found) == holds


@claim(SENSITIVITY, lambda surveyed, most: sum_sensitivity(surveyed, 0, most), lambda _, most: 3)
def test_a_sum_without_bounds_has_no_sensitivity(
    stated: Callable[[Collection, int], int], *, holds: bool
) -> None:
    """A sum of answers from 0 to M moves by M, so without a bound on them no noise is enough
    [Dwork, McSherry, Nissim & Smith 2006].

    Planted: a sensitivity that does not grow with M.
    """
    enough = []
    for most in range(1, 8):
        surveyed = collection(whole(0, most))
        question = ask(surveyed, "sum", 1)
        sums = [true_values(question, one)[0][0] for one in np.eye(most + 1, dtype=np.int64)]
        enough.append(max(sums) <= stated(surveyed, most))

    assert all(enough) == holds


@claim(MEAN, lambda n: Fraction(1, n), lambda n: Fraction(1, n + 1), lambda _: Fraction(1))
def test_a_mean_of_n_answers_moves_by_one_in_n(
    stated: Callable[[int], Fraction], *, holds: bool
) -> None:
    """A mean of n answers from 0 to 1, n public, moves by 1 / n under substitution [Dwork,
    McSherry, Nissim & Smith 2006].

    The product's figure without noise. Planted: 1 / (n + 1), and the whole range.
    """
    question = ask(collection(whole(0, 1), SUBSTITUTE), "mean", 1)
    found = []
    for n in range(1, 7):
        counters = [np.array([n - ones, ones]) for ones in range(n + 1)]
        means = [draw_release(question, each, noise=exactly).values[0] for each in counters]
        moved = max(abs(one - two) for one, two in pairwise(means))
        found.append(abs(moved - stated(n)) < 1e-12)

    assert all(found) == holds


def of_all_data(_: int) -> int:
    return 1


def of_this_data(ones: int) -> int:
    """Return how far one change moves the median of five bits of which so many are 1."""
    near = [max(0, ones - 1), ones, min(5, ones + 1)]
    return max(median_of(other) for other in near) - min(median_of(other) for other in near)


def median_of(ones: int) -> int:
    return median_low([0] * (5 - ones) + [1] * ones)


@claim(COMPARISON, of_all_data, of_this_data)
def test_noise_by_the_sensitivity_of_the_data_itself_reveals_them(
    stated: Callable[[int], int], *, holds: bool
) -> None:
    """Noise is scaled to the sensitivity over all data: scaled to how far these data's own
    neighbours are, it keeps no epsilon [Nissim, Raskhodnikova & Smith 2007].

    The median of five bits: of 0, 0, 0, 0, 1 no neighbour has another one, so it would have no
    noise, while 0, 0, 0, 1, 1 would.
    """
    q, outcomes = Fraction(1, 2), range(-5, 7)

    def released(ones: int) -> list[Fraction]:
        shifts = [y - median_of(ones) for y in outcomes]
        return [laplace(q, x) if stated(ones) else Fraction(x == 0) for x in shifts]

    pairs = [pair for ones in range(5) for pair in ((ones, ones + 1), (ones + 1, ones))]
    within = [
        q * p <= other for a, b in pairs for p, other in zip(released(a), released(b), strict=True)
    ]

    assert all(within) == holds


Graph = frozenset[tuple[int, int]]


def triangles(graph: Graph) -> int:
    return sum(graph.issuperset(combinations(corners, 2)) for corners in combinations(range(4), 3))


def worst_graph_change(statistic: Callable[[Graph], int], units: Sequence[Graph]) -> int:
    """Return how far a statistic of four nodes moves where the edges of one unit change."""
    edges = list(combinations(range(4), 2))
    graphs = [frozenset(chosen) for size in range(7) for chosen in combinations(edges, size)]
    return max(
        abs(statistic(one) - statistic(other))
        for one, other in combinations(graphs, 2)
        if any(one ^ other <= unit for unit in units)
    )


@claim(COMPARISON, {"edge": (1, 2), "node": (3, 3)}, {"edge": (1, 2), "node": (1, 2)})
def test_in_a_graph_the_unit_is_an_edge_or_a_node(
    stated: dict[str, tuple[int, int]], *, holds: bool
) -> None:
    """The unit decides: of a graph of n nodes a change of one edge moves the number of edges by 1
    and of triangles by n - 2, of all edges of a node by n - 1 and (n - 1)(n - 2) / 2 [Hay, Li,
    Miklau & Jensen 2009; Kasiviswanathan, Nissim, Raskhodnikova & Smith 2013].

    All graphs on four nodes. Planted: a node is protected by what is enough for an edge.
    """
    edges = [frozenset([edge]) for edge in combinations(range(4), 2)]
    nodes = [frozenset(e for e in combinations(range(4), 2) if node in e) for node in range(4)]
    found = {
        name: (worst_graph_change(len, units), worst_graph_change(triangles, units))
        for name, units in (("edge", edges), ("node", nodes))
    }

    assert (found == stated) == holds
