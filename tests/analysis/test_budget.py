"""The account: three figures, what was counted, what several answers reveal, whom it stops."""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module
from itertools import combinations, product
from math import isclose, prod

import numpy as np
import pytest

from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.privacy.budget import (
    HistogramBar,
    budget,
    compose_campaign,
    count_spending,
    figures,
    guessing_curve,
    window_epsilon,
    window_epsilons,
)
from veilcount_analysis.privacy.budget.composition import compose_answers, guessing_chance, specific
from veilcount_shared import select_mechanism
from veilcount_shared.composition import guessing_probability, optimal_composition
from veilcount_shared.epsilon import exp_lower, exp_upper
from veilcount_shared.mechanisms import (
    DistributionMechanism,
    MeanMechanism,
    ProjectiveGeometry,
    Randomizer,
    RangeTree,
    SubsetSelection,
)

from ..aggregator.aggregator_fixtures import make_collection
from ..aggregator.exact_rows import rows_of

pld = import_module("dp_accounting.pld.privacy_loss_distribution")  # brings no types along

HALF, ONE, TWO = Fraction(1, 2), Fraction(1), Fraction(2)
DELTA = Fraction(1, 10**6)


# -- the three figures -----------------------------------------------------------------------------


def test_the_three_figures_and_the_answers_of_a_campaign() -> None:
    """Epsilon 0.5 an event, 4 a day, on 7 drawn days: event 0.5, day 2, user 14."""
    collection = make_collection(epsilon="0.5", unit='"event"', per_day=4, answers=7)
    shown, composed = figures(collection), compose_campaign(collection)

    assert (shown.event, shown.day, shown.user) == (HALF, TWO, Fraction(14))
    assert shown.answers == composed.answers == 28
    assert composed.plain == 14


@pytest.mark.parametrize(
    ("keys", "windows"),
    [
        ({"unit": '"day"'}, {"UTC day": (1, 2), "7 UTC days in a row": (7, 8)}),
        ({"unit": '"day"', "answers": 3}, {"UTC day": (1, 2), "7 UTC days in a row": (3, 3)}),
        ({"unit": '"event"', "per_day": 2, "answers": 3}, {"UTC day": (2, 4)}),
        ({"unit": '"user"'}, {}),
    ],
)
def test_a_window_costs_the_answers_that_may_fall_into_it(
    keys: dict[str, object], windows: dict[str, tuple[int, int]]
) -> None:
    """Each way to place the answers in the periods is tried; no window has more, and one has it."""
    collection = make_collection(epsilon=1, **keys)
    found = {each.window: each for each in window_epsilons(collection)}
    placed = [set(days) for days in combinations(range(9), min(collection.answering, 9))]
    for name, (aligned, anywhere) in windows.items():
        assert found[name].epsilon == aligned
        assert found[name].at_any_moment == anywhere
    for length in range(1, 9):
        most = max(len(days & set(range(at, at + length))) for days in placed for at in range(9))
        assert window_epsilon(collection, length) == most * collection.epsilon_day

    assert bool(found) == bool(windows)


CENTRAL = {"epsilon": None, "model": '"central"', "budget": 2}


@pytest.mark.parametrize(
    ("keys", "field", "text"),
    [
        ({"unit": '"event"'}, "scope", "values only; counts and times are public"),
        ({"presence": '"hidden"'}, "scope", "values, and whether there was one"),
        ({"unit": '"event"', "presence": '"hidden"'}, "scope", "while the app runs, no more"),
        ({}, "scope", "in which months a person answered is public"),
        ({"unit": '"user"'}, "scope", "whether a person answered is public"),
        ({"answers": 5}, "server", "refuses beyond epsilon 5 a pseudonym and campaign"),
        ({"answers": 5}, "device", "in 5 periods drawn beforehand"),
        ({"unit": '"event"'}, "server", "across days, under new pseudonyms, the device alone"),
        ({"linkage": '"none"'}, "server", "the device alone enforces"),
        (CENTRAL, "device", "true value, to a trusted curator"),
        (CENTRAL, "server", "charges every release: at most epsilon 2"),
    ],
)
def test_the_figures_state_what_they_protect_and_who_enforces_it(
    keys: dict[str, object], field: str, text: str
) -> None:
    assert text in getattr(figures(make_collection(**keys)), field)


@pytest.mark.parametrize(
    ("keys", "cap", "time_range"),
    [
        ({"answers": 5}, 5, "campaign"),
        ({"unit": '"event"', "per_day": 3}, 3, "day"),
        ({"linkage": '"none"'}, None, "report"),
    ],
)
def test_the_server_caps_what_one_pseudonym_sends(
    keys: dict[str, object], cap: int | None, time_range: str
) -> None:
    shown = figures(make_collection(**keys))

    assert (shown.server_cap, shown.time_range) == (cap, time_range)


# -- counted spend ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("histogram", "bars", "mean", "worst"),
    [
        ([0, 100, 0, 50], [(1, 1, 100), (3, 3, 50)], Fraction(5, 3), 3),
        ([5, 10, 8, 0, 30, 3], [(0, 2, 23), (4, 5, 33)], Fraction(161, 56), 5),
        ([0, 10, 9], [], None, None),
        ([], [], None, None),
    ],
    ids=["mean and worst", "small bars are joined", "too few pseudonyms", "nobody"],
)
def test_spend_is_counted_in_bars_of_at_least_20_pseudonyms(
    histogram: list[int], bars: list[tuple[int, int, int]], mean: Fraction | None, worst: int | None
) -> None:
    shown = count_spending(make_collection(epsilon="0.5"), histogram)

    assert shown.bars == tuple(
        HistogramBar(least, most, most * HALF, count) for least, most, count in bars
    )
    assert shown.pseudonyms == sum(histogram)
    assert shown.mean == (mean and mean * HALF)
    assert shown.worst == (worst and worst * HALF)
    assert shown.cap == 6


@pytest.mark.parametrize(
    ("unit", "histogram", "reason"),
    [
        ("day", [0, 40], r"linkage is period.*state the cap instead"),
        ("month", [0] * 13 + [1], "0 to 12 spent slots"),
        ("month", [0, -1, 40], "0 to 12 spent slots"),
    ],
)
def test_spend_that_is_no_count_is_refused(unit: str, histogram: list[int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        count_spending(make_collection(unit=f'"{unit}"'), histogram)


# -- T answers together ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "epsilon", "times", "expected"),
    [
        (10, "0.5", 30, "10.49"),
        (10, "2", 30, "51.4"),
        (10, "1", 365, "158.8"),
        (1000, "1", 30, "22.08"),
        (1000, "0.5", 365, "51.8"),
    ],
)
def test_its_own_design_gives_known_values(k: int, epsilon: str, times: int, expected: str) -> None:
    """At delta = 1e-6, to the digits shown."""
    found = specific(select_mechanism(k, epsilon).mechanism, times, DELTA)

    assert round(float(found), len(expected.partition(".")[2])) == float(expected)


def test_two_inputs_are_the_worst_mechanism_there_is() -> None:
    """Warner's coin reaches the optimal bound exactly: KOV(1, 365, 1e-6) = 244.63."""
    shown = compose_answers(select_mechanism(2, 1).mechanism, 365)

    assert shown.optimal == optimal_composition(ONE, 365, DELTA)
    assert isclose(float(shown.optimal), 244.63, abs_tol=0.005)
    assert shown.specific is not None
    assert abs(shown.specific - shown.optimal) < Fraction(1, 10**5)


Small = SubsetSelection | ProjectiveGeometry
Chances = list[tuple[Fraction, Fraction]]


def chances_of(mechanism: Small, times: int) -> Chances:
    """How likely every string of messages is from input 0, and from input 1."""
    strings = product(*[list(zip(*rows_of(mechanism)[:2], strict=True))] * times)
    return [
        (prod((zero for zero, _ in sent), start=ONE), prod((one for _, one in sent), start=ONE))
        for sent in strings
    ]


def exact_delta(chances: Chances, e: Fraction) -> Fraction:
    """The definition of (epsilon, delta)."""
    return sum((max(zero - e * one, Fraction(0)) for zero, one in chances), Fraction(0))


small = pytest.mark.parametrize(
    "mechanism",
    [
        SubsetSelection.for_epsilon(ONE, 2, 1),
        SubsetSelection.for_epsilon(TWO, 3, 1),
        SubsetSelection.for_epsilon(TWO, 4, 2),
        ProjectiveGeometry.for_epsilon(ONE, 7, 2, 3),
    ],
    ids=str,
)


@small
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_design_of_its_own_is_the_least_that_holds(mechanism: Small, times: int) -> None:
    """Enumerated: at the result delta is kept, three millionths below it is not."""
    chances = chances_of(mechanism, times)
    for delta in (Fraction(1, 10), Fraction(1, 100)):
        found = specific(mechanism, times, delta)
        below = found - Fraction(3, 10**6)

        assert exact_delta(chances, exp_lower(found)) <= delta
        assert below <= 0 or exact_delta(chances, exp_upper(below)) > delta


@small
@pytest.mark.parametrize("times", [1, 2, 3])
def test_nobody_guesses_better_than_the_curve(mechanism: Small, times: int) -> None:
    """The best guess from every string of messages, enumerated; and the curve is not far above."""
    best = sum((max(pair) / 2 for pair in chances_of(mechanism, times)), Fraction(0))
    shown = guessing_chance(mechanism, times)

    assert best <= shown.mechanism <= shown.fresh
    assert shown.mechanism - best < Fraction(1, 10**8)


@pytest.mark.parametrize("k", [3, 10])
def test_dp_accounting_agrees_on_classic_randomized_response(k: int) -> None:
    """Google's library prices the same mechanism on a grid of 1e-4; 5 % of epsilon is rejected."""
    own, other = (SubsetSelection.for_epsilon(Fraction(each), k, 1) for each in ("3", "2.85"))
    noise = float((1 - own.P) * k / (k - 1))
    composed = pld.from_randomized_response(noise_parameter=noise, num_buckets=k).self_compose(30)
    theirs = composed.get_epsilon_for_delta(1e-6)

    assert isclose(theirs, specific(own, 30, DELTA), rel_tol=2e-3)
    assert not isclose(theirs, specific(other, 30, DELTA), rel_tol=2e-3)


@pytest.mark.parametrize(
    "mechanism",
    [
        select_mechanism(10, 1).mechanism,
        select_mechanism(1000, 1).mechanism,
        MeanMechanism.for_epsilon(ONE),
        DistributionMechanism.for_epsilon(TWO),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_dp_accounting_agrees_on_subsets_planes_and_windows(mechanism: Randomizer) -> None:
    (pair,) = handler_of(mechanism).overlaps()
    right = float(pair.P * pair.alone / pair.own)
    wrong = float((1 - pair.P) * pair.alone / (1 - pair.own))
    upper = {0: np.log(right), 1: np.log(wrong), 2: np.log1p(-right - wrong)}
    lower = {0: upper[1], 1: upper[0], 2: upper[2]}
    theirs = pld.from_two_probability_mass_functions(lower, upper).self_compose(30)

    assert isclose(theirs.get_epsilon_for_delta(1e-6), specific(mechanism, 30, DELTA), rel_tol=2e-3)


def test_a_tree_s_answers_reveal_less_than_the_plain_sum() -> None:
    shown = compose_answers(RangeTree.for_epsilon(ONE), 30)

    assert shown.optimal is not None
    assert shown.specific is not None
    assert shown.specific < shown.optimal < shown.plain


def test_of_a_curator_and_of_very_long_campaigns_the_plain_sum_is_shown() -> None:
    central = compose_campaign(make_collection(**CENTRAL))
    long = compose_campaign(make_collection(unit='"event"', per_day=50, linkage='"none"'))

    assert (central.plain, central.optimal, central.specific) == (Fraction(24), None, None)
    assert (long.answers, long.optimal, long.specific) == (18_250, None, None)


def test_a_frozen_answer_is_no_better_the_thirtieth_time() -> None:
    curve = guessing_curve(select_mechanism(2, 1).mechanism, 365)

    assert [point.answers for point in curve] == [1, 7, 30, 90, 365]
    assert {point.frozen for point in curve} == {guessing_probability(ONE, 1)}
    assert curve[-1].fresh > Fraction(999_999, 10**6)


def test_the_page_has_all_of_it() -> None:
    collection = make_collection()
    page = budget(collection, [0, 30])

    assert page.figures == figures(collection)
    assert page.spent == count_spending(collection, [0, 30])
    assert page.composition == compose_campaign(collection)
    assert [point.answers for point in page.guessing_curve] == [1, 7, 12]
    assert budget(collection).spent is None
    # who holds the truth need not guess
    assert budget(make_collection(**CENTRAL)).guessing_curve == ()
