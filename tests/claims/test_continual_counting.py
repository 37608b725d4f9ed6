"""Continual counting: totals that grow, released every period."""

from __future__ import annotations

from collections.abc import Callable
from math import log2, sqrt

from veilcount_analysis.releases import DiscreteLaplaceNoise
from veilcount_analysis.releases.prefix_sums import strategies, tree_name

from .claim_harness import claim

TREE = "aggregator/analysis/veilcount_analysis/releases/prefix_sums.py"
LAPLACE = "aggregator/analysis/veilcount_analysis/releases/discrete_laplace.py"
Nodes = list[tuple[int, int]]


def levels(periods: int) -> int:
    return periods.bit_length()


def dyadic(until: int) -> Nodes:
    """Return the nodes of a binary tree that make up the first periods, as (start, end)."""
    start, nodes = 0, []
    for bit in range(until.bit_length(), -1, -1):
        if until >> bit & 1:
            nodes.append((start, start + (1 << bit)))
            start += 1 << bit
    return nodes


def singles(until: int) -> Nodes:
    return [(period, period + 1) for period in range(until)]


def offered(periods: int) -> tuple[set[tuple[int, int]], int]:
    """Return the nodes of the product's binary tree, and in how many of them a period lies."""
    tree = next(each for each in strategies(periods) if each.name == tree_name(2))
    ends = [(int(row.argmax()), int(row.argmax() + row.sum())) for row in tree.rows]
    return set(ends), tree.l1


@claim(TREE, dyadic, singles)
def test_a_total_needs_logarithmically_many_nodes(
    stated: Callable[[int], Nodes], *, holds: bool
) -> None:
    """Every total of d periods is a sum of at most log2(d) + 1 nodes of a binary tree, and a period
    lies in as many nodes at most [Dwork, Naor, Pitassi & Rothblum 2010].

    Enumerated, of the nodes that a running total adds noise to. Planted: the sum of the periods,
    whose number is d.
    """
    most = 200
    sets = {until: stated(until) for until in range(1, most + 1)}
    used = {node for nodes in sets.values() for node in nodes}
    assert offered(most)[0] >= used
    assert offered(most)[1] <= levels(most)
    for until, nodes in sets.items():
        assert [p for start, end in nodes for p in range(start, end)] == list(range(until))

    bounded = max(map(len, sets.values())) <= levels(most)
    assert bounded == holds
    assert max(sum(a <= p < b for a, b in used) for p in range(most)) <= levels(most)


def summed(periods: int, epsilon: float) -> float:
    """Return the root mean square error of totals of independent releases."""
    return DiscreteLaplaceNoise(1 / epsilon).deviation * sqrt((periods + 1) / 2)


def tree(periods: int, epsilon: float) -> float:
    """Return the same of a binary tree, each level with its part of epsilon."""
    nodes = sum(until.bit_count() for until in range(1, periods + 1)) / periods
    return DiscreteLaplaceNoise(levels(periods) / epsilon).deviation * sqrt(nodes)


Error = Callable[[int, float], float]


@claim(LAPLACE, tree, summed)
def test_the_error_of_a_tree_grows_as_a_power_of_a_logarithm(stated: Error, *, holds: bool) -> None:
    """The error of totals from a binary tree is at most sqrt(2) log2(2 d)^1.5 / epsilon, that of
    summed releases grows with sqrt(d) [Chan, Shi & Song 2011]."""
    found = [
        stated(periods, epsilon) <= sqrt(2) * log2(2 * periods) ** 1.5 / epsilon
        for periods in (1 << 7, 1 << 12, 1 << 16)
        for epsilon in (0.1, 1.0)
    ]

    assert all(found) == holds


@claim(LAPLACE, 3650, 52, 365)
def test_a_tree_pays_for_itself_after_years(stated: int, *, holds: bool) -> None:
    """The logarithmic factor has a price: at epsilon 1 summed releases have the smaller error over
    a year, and the classical tree, whose totals are plain sums of nodes, over ten [Chan, Shi & Song
    2011]."""
    assert (tree(stated, 1.0) < summed(stated, 1.0)) == holds
