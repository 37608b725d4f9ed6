"""Budgets across collections: sums, adjacencies, and the cohorts and twins of one person."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import product

from veilcount_analysis.privacy.budget import compose_collections
from veilcount_shared import Collection

from ..aggregator.aggregator_fixtures import make_collections

KEYS = 'question = "q"\nboolean = true\nunit = "month"\nfrom = 2026-12-01\nuntil = 2027-12-01\n'


def test_nothing_is_summed_over_different_adjacencies() -> None:
    curated = f'{KEYS}model = "central"\nbudget = '
    text = (
        f"[a]\n{KEYS}epsilon = 1\n"
        f'[b]\n{curated}2\nadjacency = "add-remove"\n'
        f'[c]\n{curated}4\nadjacency = "substitute"\n'
        f'[d]\n{curated}8\nadjacency = "add-remove"\n'
    )
    shown = compose_collections(make_collections(text))

    assert {(each.model, each.adjacency): each.plain for each in shown.totals} == {
        ("local", "substitute"): 12,
        ("central", "add-remove"): 12 * 10,
        ("central", "substitute"): 12 * 4,
    }
    assert [each.collections for each in shown.totals if len(each.collections) > 1] == [("b", "d")]


def test_cohorts_cost_the_largest_and_not_the_sum() -> None:
    cohort = 'cohort = {{draw = "{}", of = 3, number = {}}}\n'.format
    text = "".join(
        [
            f"[all]\n{KEYS}epsilon = 1\n",
            f"[s0]\n{KEYS}epsilon = 2\n{cohort('spring', 0)}",
            f"[s0b]\n{KEYS}epsilon = 0.5\n{cohort('spring', 0)}",
            f"[s1]\n{KEYS}epsilon = 3\n{cohort('spring', 1)}",
            f"[f2]\n{KEYS}epsilon = 1\n{cohort('fall', 2)}",
            f'[t]\n{KEYS}epsilon = 1\ntwin = "u"\n{cohort("fall", 0)}',
            f'[u]\n{KEYS}model = "central"\nbudget = 4\n{cohort("fall", 0)}',
        ]
    )
    collections = make_collections(text)
    local, central = compose_collections(collections).totals

    assert local.worst == worst_person(local.collections, collections) == 12 * (1 + 3 + 1)
    assert central.worst == worst_person(central.collections, collections) == 12 * 4
    assert (local.plain, central.plain) == (12 * Fraction("8.5"), Fraction(48))
    assert [draw.draw for draw in local.draws] == ["fall", "spring"]
    assert compose_collections({}).totals == ()


GROUPED = "".join(f"[{name}]\n{KEYS}epsilon = 2\n" for name in "abc")
GROUP = '[group.habits]\nquestions = ["a", "b", "c"]\n'


def test_a_group_costs_one_of_its_questions() -> None:
    (total,) = compose_collections(make_collections(GROUPED + GROUP)).totals
    (apart,) = compose_collections(make_collections(GROUPED)).totals

    assert (total.worst, total.plain) == (12 * 2, 12 * 6)
    assert apart.worst == 12 * 6  # planted: without the group
    assert [draw.of for draw in total.draws] == [3]


def test_a_name_with_another_draw_before_counts_for_everybody() -> None:
    """Who answered it may be drawn for another question now; so may who answered all of them."""
    collections = make_collections(GROUPED + GROUP)
    worst = {
        redrawn: compose_collections(collections, set(redrawn)).totals[0].worst
        for redrawn in ("", "a", "ab", "abc")
    }

    assert worst == {"": 12 * 2, "a": 12 * 4, "ab": 12 * 6, "abc": 12 * 6}


def worst_person(names: Iterable[str], collections: dict[str, Collection]) -> Fraction:
    """The most expensive choice of cohorts and twins, one person after another."""

    def answers(each: Collection, mine: dict[str, int], side: str) -> bool:
        in_cohort = each.cohort is None or mine[each.cohort.draw] == each.cohort.number
        return in_cohort and (each.twin is None or each.name == side)

    persons = [
        ({"spring": spring, "fall": fall}, side)
        for spring, fall, side in product(range(3), range(3), ("t", "u"))
    ]
    listed = [collections[name] for name in names]
    return max(
        sum((each.epsilon_user for each in listed if answers(each, *person)), Fraction(0))
        for person in persons
    )
