"""Composition: what several answers reveal, of one person and of several."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise, product
from math import comb, expm1, log, prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilcount_aggregator.errors import InsufficientBudget
from veilcount_aggregator.releases import privacy_filter
from veilcount_aggregator.releases.budget_ledger import ReleasePrice, require_budget
from veilcount_aggregator.releases.privacy_filter import PrivacyFilter
from veilcount_aggregator.releases.release_journal import ReleaseJournal
from veilcount_aggregator.store import open_store
from veilcount_analysis.privacy.budget.composition import compose_answers, guessing_chance
from veilcount_analysis.releases import PricedQuery
from veilcount_analysis.series.series import Series
from veilcount_shared.collection import Adjacency
from veilcount_shared.composition import (
    basic_composition,
    guessing_probability,
    optimal_composition,
    parallel_composition,
)
from veilcount_shared.epsilon import exp_lower
from veilcount_shared.mechanisms import SquareWave, SubsetSelection

from ..aggregator.releases.release_fixtures import (
    ADD_REMOVE,
    SUBSTITUTE,
    ask,
    collection,
    true_values,
    whole,
)
from ..enumeration import max_likelihood_ratio
from .claim_harness import claim
from .exact_noise import laplace
from .test_definitions import joint, sent

ZERO, HALF, ONE, TWO = Fraction(0), Fraction(1, 2), Fraction(1), Fraction(2)
BIT, SURER_BIT = (SubsetSelection.for_epsilon(epsilon, 2, 1) for epsilon in (ONE, TWO))
DELTA = Fraction(1, 10**6)
PAIRS = (
    (BIT, SubsetSelection.for_epsilon(ONE, 4, 1)),
    (SubsetSelection.for_epsilon(HALF, 4, 2), SquareWave.for_epsilon(ONE, 4, 2)),
)
SHARED = "shared/veilcount_shared/composition.py"
FILTER = "aggregator/veilcount_aggregator/releases/privacy_filter.py"
BUDGET = "aggregator/analysis/veilcount_analysis/privacy/budget/composition.py"

Composition = Callable[[list[Fraction]], Fraction]


@claim(SHARED, basic_composition, parallel_composition)
def test_several_answers_of_one_person_add_up(stated: Composition, *, holds: bool) -> None:
    """Answers of one person together keep the sum of their epsilons, and independent ones reach
    it [Dwork & Roth 2014, theorem 3.14]."""
    for one, two in PAIRS:
        ends = [(sent(each, 0), sent(each, each.inputs - 1)) for each in (one, two)]
        together = max_likelihood_ratio([joint(*each) for each in zip(*ends, strict=True)])
        bound = stated([one.epsilon, two.epsilon])

        assert (together <= exp_lower(bound)) == holds
        assert together > exp_lower(bound - Fraction(1, 1000))


def two_draws(x: int, y: int) -> Fraction:
    return laplace(HALF, x) * laplace(HALF, y)


def one_draw(x: int, y: int) -> Fraction:
    return laplace(HALF, x) * (x == y)


@claim(SHARED, two_draws, one_draw)
def test_each_answer_needs_noise_of_its_own(
    stated: Callable[[int, int], Fraction], *, holds: bool
) -> None:
    """Epsilons add up only where each answer has noise of its own: two counts under one draw
    reveal their exact difference [Dwork, Kenthapadi, McSherry, Mironov & Naor 2006].

    How many answered and how many of them yes, at epsilon = ln 2 each, of nobody and of a person
    who says no or yes.
    """
    bound = 2 ** basic_composition([ONE, ONE])
    within = [
        stated(x, y) <= bound * stated(x - 1, y - yes)
        for x, y in product(range(-4, 6), repeat=2)
        for yes in (0, 1)
    ]

    assert all(within) == holds


def follow_up(message: int) -> SubsetSelection:
    """Return the second question, chosen by the answer to the first."""
    return SubsetSelection.for_epsilon(ONE, *((4, 2), (2, 1))[message])


@claim(SHARED, basic_composition, parallel_composition)
def test_questions_that_follow_earlier_answers_add_up(stated: Composition, *, holds: bool) -> None:
    """The sum of the epsilons holds as well where each question is chosen after the answers to
    earlier ones [Dwork, Rothblum & Vadhan 2010]."""
    views: list[dict[Any, Fraction]] = [
        {
            (first, second): p * chance
            for first, p in sent(BIT, x).items()
            for second, chance in sent(follow_up(first), x).items()
        }
        for x in (0, 1)
    ]

    assert (max_likelihood_ratio(views) <= exp_lower(stated([ONE, ONE]))) == holds


@claim(SHARED, parallel_composition, min)
def test_answers_of_several_people_do_not_add_up(stated: Composition, *, holds: bool) -> None:
    """Of collections that no person is in two of, the largest epsilon holds for everyone
    [McSherry 2009, theorem 4].

    Planted: the smallest one.
    """
    first, second = ([sent(each, x) for x in (0, 1)] for each in (BIT, SURER_BIT))
    only_first = max_likelihood_ratio([joint(each, second[1]) for each in first])
    only_second = max_likelihood_ratio([joint(first[0], each) for each in second])

    assert (max(only_first, only_second) <= exp_lower(stated([ONE, TWO]))) == holds


Turn = tuple[Fraction, int | None]  # what was asked for, and the answer; None: refused


def adversary(turns: list[Turn]) -> Fraction:
    """Return the next epsilon, which depends on the answers so far."""
    was_yes = bool(turns and turns[-1][1])
    return (HALF, HALF / (2 - was_yes), HALF / 2 if was_yes else 3 * HALF / 2)[len(turns)]


def play(budget: PrivacyFilter, answers: tuple[int, ...]) -> tuple[Turn, ...]:
    """Return an adversary's view of the product's filter, where releases have these answers."""
    survey = Series(collection(whole(0, 3), budget=ONE))
    turns: list[Turn] = []
    for place, answer in enumerate(answers):
        epsilon = adversary(turns)
        question = ask(survey.collection, f"age >= {place + 1}", epsilon)
        try:
            budget.release(survey, question, dict, datetime(2027, 1, 1, tzinfo=UTC), "")
            turns.append((epsilon, answer))
        except InsufficientBudget:
            turns.append((epsilon, None))
    return tuple(turns)


def chance(x: int, epsilon: Fraction, answer: int | None) -> Fraction:
    """Return the chance of a turn's answer; a refusal is certain."""
    return ONE if answer is None else sent(SubsetSelection.for_epsilon(epsilon, 2, 1), x)[answer]


def before_the_charge(series: Series, charges: dict[int, int], earlier: list[ReleasePrice]) -> None:
    """Refuse only where nothing is left."""
    require_budget(series, dict.fromkeys(charges, 1), earlier)


@claim(FILTER, require_budget, before_the_charge)
def test_a_filter_keeps_its_budget_against_an_adaptive_analyst(
    stated: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, holds: bool
) -> None:
    """All that an analyst sees keeps the budget, whatever epsilon each question takes and however
    it depends on earlier answers, if a release that would exceed the budget is refused [Rogers,
    Roth, Ullman & Vadhan 2016].

    Every play of three turns against the product's filter; a release is a randomized bit. Planted:
    a filter that checks what is spent, without the release that is asked for.
    """
    monkeypatch.setattr(privacy_filter, "require_budget", stated)
    views = []
    for place, answers in enumerate(product((0, 1), repeat=3)):
        with closing(open_store(f"memory:{tmp_path}/{place}", make=True)) as store:
            journal = ReleaseJournal(tmp_path / f"{place}.jsonl")
            views.append(play(PrivacyFilter(store, journal), answers))
    chances: list[dict[Any, Fraction]] = [
        {view: prod((chance(x, *turn) for turn in view), start=ONE) for view in views}
        for x in (0, 1)
    ]

    assert all(sum(distribution.values()) == 1 for distribution in chances)
    assert (max_likelihood_ratio(chances) <= exp_lower(ONE)) == holds


def added_up(adjacency: Adjacency, epsilons: list[Fraction]) -> Fraction:
    """Return the epsilon of releases of disjoint parts of the data."""
    parallel = adjacency is ADD_REMOVE
    return (parallel_composition if parallel else basic_composition)(epsilons)


def two_counts(question: PricedQuery, data: tuple[int, int]) -> dict[Any, Fraction]:
    """Return the chances of a histogram's counts under noise of ln 2 and of twice that."""
    no, yes = true_values(question, np.array(data))[0]
    window = product(range(-3, 5), repeat=2)
    return {(y, z): laplace(HALF, y - no) * laplace(HALF**2, z - yes) for y, z in window}


@claim(SHARED, added_up, lambda _, epsilons: parallel_composition(epsilons))
def test_a_change_of_part_costs_both_parts(
    stated: Callable[[Adjacency, list[Fraction]], Fraction], *, holds: bool
) -> None:
    """Of releases of disjoint parts of the data the largest epsilon holds under add-remove; under
    substitution a record can leave one part for another, and two of them add up [McSherry 2009;
    Kifer & Machanavajjhala 2011].

    Two counts, with noise of epsilon and 2 epsilon, for epsilon = ln 2. Planted: the largest.
    """
    for adjacency, neighbours in (
        (ADD_REMOVE, [((0, 0), (1, 0)), ((0, 0), (0, 1))]),
        (SUBSTITUTE, [((0, 1), (1, 0))]),
    ):
        question = ask(collection(whole(0, 1), adjacency), "histogram", 1)
        released = [[two_counts(question, each) for each in pair] for pair in neighbours]
        worst = max(max_likelihood_ratio(pair) for pair in released)
        bound = 2 ** stated(adjacency, [ONE, TWO])

        assert (worst <= bound) == (holds or adjacency is ADD_REMOVE)


def exact_delta(answers: int, epsilon: Fraction) -> Fraction:
    """Return the delta of independent randomized responses, over all sequences of messages."""
    one, two = (joint(*[sent(BIT, x)] * answers) for x in (0, 1))
    return sum((max(one[m] - exp_lower(epsilon) * two[m], ZERO) for m in one), ZERO)


@claim(SHARED, ZERO, Fraction(1, 1000), Fraction(-1, 1000))
def test_the_optimal_composition_is_exact(stated: Fraction, *, holds: bool) -> None:
    """The optimal epsilon of T answers at a delta is the one that T randomized responses reach
    [Kairouz, Oh & Viswanath 2015, theorem 3.3].

    Their delta, enumerated: within it at that epsilon, and beyond it a millionth below. Planted:
    an epsilon that is a thousandth off, either way.
    """
    hair = Fraction(1, 10**6)
    found = []
    for answers, delta in ((2, Fraction(1, 10)), (4, Fraction(1, 10)), (7, Fraction(1, 1000))):
        at = optimal_composition(ONE, answers, delta) + stated
        found.append(exact_delta(answers, at) <= delta < exact_delta(answers, at - hair))

    assert all(found) == holds
    assert any(found) == holds


def advanced(epsilon: Fraction, answers: int, delta: Fraction) -> float:
    """Return the bound of the advanced composition theorem for pure mechanisms."""
    eps = float(epsilon)
    return eps * sqrt(2 * answers * log(1 / delta)) + answers * eps * expm1(eps)


@claim(BUDGET, advanced, lambda epsilon, answers, _: float(epsilon) * sqrt(answers))
def test_the_bounds_of_composition_are_ordered(
    stated: Callable[[Fraction, int, Fraction], float], *, holds: bool
) -> None:
    """The mechanism's own bound is at most the optimal one, which is at most the basic and the
    advanced one: sqrt(2 T ln(1 / delta)) eps + T eps (e^eps - 1) [Dwork & Roth 2014,
    theorem 3.20].

    Planted: sqrt(T) eps, the root without its logarithm.
    """
    found = []
    for epsilon, answers in ((Fraction(1, 10), 100), (HALF, 30), (ONE, 7)):
        composed = compose_answers(SubsetSelection.for_epsilon(epsilon, 10, 1), answers, DELTA)
        assert composed.optimal is not None
        assert composed.specific is not None
        assert composed.specific <= composed.optimal <= composed.plain
        found.append(composed.optimal <= stated(epsilon, answers, DELTA))

    assert all(found) == holds


@claim(SHARED, Fraction(1, 10), ONE)
def test_advanced_composition_gains_for_small_epsilons_only(
    stated: Fraction, *, holds: bool
) -> None:
    """Over a year the advanced bound is below the plain sum at small epsilons, and above it at
    epsilon 1, where the sum of 365 stays meaningless at delta = 1e-6 too: 244.63 [Dwork & Roth
    2014]."""
    assert round(float(optimal_composition(ONE, 365, DELTA)), 2) == 244.63
    assert (advanced(stated, 365, DELTA) < basic_composition([stated] * 365)) == holds


def majority(p: Fraction, answers: int) -> Fraction:
    """Return the probability that most of an odd number of answers are right."""
    most = range(answers // 2 + 1, answers + 1)
    return sum((comb(answers, k) * p**k * (1 - p) ** (answers - k) for k in most), ZERO)


@claim(SHARED, guessing_probability, lambda epsilon, _: guessing_probability(epsilon, 1))
def test_the_best_guess_from_independent_answers_is_the_majority(
    stated: Callable[[Fraction, int], Fraction], *, holds: bool
) -> None:
    """The averaging attack: randomized response that is drawn afresh is undone by a majority,
    which after a year at epsilon 1 a day is wrong less than once in ten billion times [Erlingsson,
    Pihur & Korolova 2014].

    No guess is better than the majority. Planted: a bound that repetition does not move.
    """
    right = sent(BIT, 1)[1]
    found = [
        0 <= stated(ONE, answers) - majority(right, answers) <= Fraction(2, 10**9)
        for answers in (3, 31, 365)
    ]

    assert all(found) == holds
    assert 1 - majority(right, 365) < Fraction(1, 10**10)


def replayed(x: int, answers: int) -> dict[Any, Fraction]:
    return {(message,) * answers: p for message, p in sent(BIT, x).items()}


def redrawn(x: int, answers: int) -> dict[Any, Fraction]:
    return joint(*[sent(BIT, x)] * answers)


@claim(BUDGET, replayed, redrawn)
def test_a_persistent_answer_is_not_undone(
    stated: Callable[[int, int], dict[Any, Fraction]], *, holds: bool
) -> None:
    """A frozen answer that is sent again and again reveals what it revealed the first time
    [Erlingsson, Pihur & Korolova 2014].

    The best guess, exactly, from all that was sent, against the product's figure for frozen
    answers. Planted: the same answers, drawn afresh.
    """
    for answers in (3, 7):
        one, two = (stated(x, answers) for x in (0, 1))
        guess = (1 + sum((max(one[m] - two[m], ZERO) for m in one), ZERO)) / 2
        chance = guessing_chance(BIT, answers)

        assert (guess <= chance.frozen) == holds
        assert guess <= chance.fresh


@claim(BUDGET, 1, 2)
def test_the_guess_grows_with_each_answer_until_the_cap(stated: int, *, holds: bool) -> None:
    """What is guessed from independent answers grows with every second one, so a bound on what is
    revealed in the end needs a cap on their number [Dwork & Roth 2014].

    Of an even number of answers the last only breaks ties: planted is a gain from each.
    """
    chances = [guessing_chance(BIT, answers).fresh for answers in range(1, 12, 3 - stated)]
    odd = all(one < two for one, two in pairwise(chances))

    assert odd == holds
