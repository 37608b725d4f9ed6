"""A trend keeps epsilon over a whole campaign: every history, every outcome of the real code."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import pytest

from veilcount_shared.epsilon import exp_lower, threshold
from veilcount_shared.errors import DefinitionError, EpsilonError
from veilcount_shared.mechanisms.trend import TrendMechanism, TrendState
from veilcount_shared.randomness import RandomSource

from ..enumeration import Distribution, enumerate_distribution, max_likelihood_ratio
from ..least_squares import exact_weights
from .definition_harness import parse_definition

EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(4)]
SHAPES = [(2, 1), (3, 1), (5, 1), (4, 3), (5, 3), (5, 5)]  # periods, changes
History = tuple[int, ...]


def histories(trend: TrendMechanism) -> list[History]:
    """Every history, those with more changes than stated included."""
    return list(product((0, 1), repeat=trend.periods))


def within(trend: TrendMechanism, history: History) -> bool:
    return sum(one != two for one, two in pairwise((0, *history))) <= trend.changes


def sent_over_time(trend: TrendMechanism, history: History, randomness: RandomSource) -> int:
    """All that a person sends, as one number: the level and the messages in order."""
    state = trend.draw_state(randomness)
    messages = 1
    for period, value in enumerate(history):
        if trend.last_period(state.level, period) == period:
            message, state = trend.report(state, value, randomness)
            messages = 2 * messages + message % 2
    return messages * trend.levels + state.level


@cache
def distribution(trend: TrendMechanism, history: History) -> Distribution:
    return enumerate_distribution(lambda randomness: sent_over_time(trend, history, randomness))


def worst_ratio(trend: TrendMechanism) -> Fraction:
    return max_likelihood_ratio([distribution(trend, history) for history in histories(trend)])


def estimate(trend: TrendMechanism, everything: int, period: int) -> Fraction:
    """One person's unbiased estimate of their value after a number of periods."""
    messages, level = divmod(everything, trend.levels)
    count = trend.reports(level)
    signs = [2 * (messages >> count - 1 - i & 1) - 1 for i in range(count)]
    first = sum(trend.reports(shorter) for shorter in range(level))
    weights = exact_weights(trend.periods)[period - 1][first:]
    total = sum(weight * sign for weight, sign in zip(weights, signs, strict=False))
    return total * trend.levels / trend.gap


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("periods", "changes"), SHAPES)
def test_all_that_a_person_sends_keeps_epsilon_and_uses_it(
    periods: int, changes: int, epsilon: Fraction
) -> None:
    trend = TrendMechanism.for_epsilon(epsilon, periods, changes)

    assert all(sum(distribution(trend, one).values()) == 1 for one in histories(trend))
    ratio = worst_ratio(trend)
    assert ratio <= exp_lower(epsilon)
    assert ratio == trend.P / (1 - trend.P)


@pytest.mark.parametrize(("periods", "changes"), SHAPES)
def test_estimates_are_unbiased_and_their_variance_is_as_stated(periods: int, changes: int) -> None:
    """Exactly: E = the value, and E of the square = m / g^2 times the sum of squared weights.

    Signs of a person in two intervals have a product that is 0 on average, whatever the majority:
    it is the same for a pattern and its complement.
    """
    trend = TrendMechanism.for_epsilon(Fraction(1), periods, changes)
    for history in (one for one in histories(trend) if within(trend, one)):
        weights = distribution(trend, history).items()
        for period in range(1, periods + 1):
            figures = [(estimate(trend, each, period), weight) for each, weight in weights]
            squares = sum(weight**2 for weight in exact_weights(periods)[period - 1])

            assert sum(f * weight for f, weight in figures) == history[period - 1]
            assert sum(f * f * weight for f, weight in figures) == (
                squares * trend.levels / trend.gap**2
            )


# -- what must be rejected -------------------------------------------------------------------------


class FreshSigns(TrendMechanism):
    """Planted: each change draws signs of its own, which costs epsilon again."""

    def report(
        self, state: TrendState, value: int, randomness: RandomSource
    ) -> tuple[int, TrendState]:
        message, after = super().report(state, value, randomness)
        return message, replace(after, signs=self.draw_state(randomness).signs, used=0)


class RepeatedSigns(TrendMechanism):
    """Planted: signs are not marked as used."""

    def report(
        self, state: TrendState, value: int, randomness: RandomSource
    ) -> tuple[int, TrendState]:
        message, after = super().report(state, value, randomness)
        return message, replace(after, used=0)


class SilentWithoutChange(TrendMechanism):
    """Planted: the message of an interval without a change is always the same."""

    def report(
        self, state: TrendState, value: int, randomness: RandomSource
    ) -> tuple[int, TrendState]:
        if value == state.initial:
            return 2 * state.level, state
        return super().report(state, value, randomness)


def keeps_epsilon(trend: TrendMechanism) -> bool:
    try:
        return worst_ratio(trend) <= exp_lower(trend.epsilon)
    except AssertionError:  # a message that only some histories can send
        return False


@pytest.mark.parametrize("wrong", [FreshSigns, RepeatedSigns, SilentWithoutChange])
def test_a_planted_error_is_seen(wrong: type[TrendMechanism]) -> None:
    assert not keeps_epsilon(wrong.for_epsilon(Fraction(1), 2, 1))


def test_a_threshold_one_too_high_is_seen_and_refused() -> None:
    trend = TrendMechanism.for_epsilon(Fraction(1), 3, 1)
    wrong = copy.copy(trend)
    object.__setattr__(wrong, "a", trend.a + 1)

    assert not keeps_epsilon(wrong)
    with pytest.raises(EpsilonError, match="k=1"):
        TrendMechanism(3, 1, trend.a + 1, Fraction(1))


@pytest.mark.parametrize(
    ("periods", "changes", "message"),
    [
        (0, 1, "periods = 0: give 1 to 65,536"),
        (65_537, 1, "periods = 65537: give 1 to 65,536"),
        (12, 0, "changes = 0: give an odd number from 1 to 63"),
        (12, 2, "changes = 2: give an odd number from 1 to 63"),
        (12, 65, "changes = 65: give an odd number from 1 to 63"),
    ],
)
def test_wrong_shapes_are_named_with_the_fix(periods: int, changes: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrendMechanism(periods, changes, threshold(Fraction(1), 1, 2), Fraction(1))


TREND = 'boolean = true\nmeasure = "trend"\nchanges = 3'


def test_a_definition_has_the_keys_that_a_state_needs() -> None:
    collection = parse_definition(TREND)

    assert (collection.takes, collection.held, collection.presence) == ("last", "device", "hidden")
    assert collection.mechanism == TrendMechanism.for_epsilon(Fraction(1), 12, 3)
    assert (collection.epsilon_event, collection.epsilon_user) == (Fraction(1), Fraction(1))
    assert [collection.epsilon_within(each) for each in (0, 1, 5)] == [0, 1, 1]
    assert collection.describe_message(b"\5") == "over 4 periods: from False to True, or by chance"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("changes = 2", "changes = 2: give how often it changes at most: odd, 1 to 63"),
        ("changes = 65", "changes = 65: give how often"),
        ('takes = "first"', 'takes = "first": a state is what it was last'),
        ('held = "process"', 'held = "process": a state outlives a process'),
        ('presence = "public"', 'presence = "public": a state has no absence'),
        ("answers = 3", "answers = 3: the reports are drawn by the trend: remove it"),
        ('unit = "event"', "unit = "),
        ('unit = "user"', "unit = "),
        ('values = ["a", "b"]', "measure = "),
        ('model = "central"', 'model = "central": a curator has running totals'),
    ],
)
def test_what_does_not_go_with_a_state_is_named_with_the_fix(line: str, message: str) -> None:
    key = line.split(" =", maxsplit=1)[0]
    replaced = {"changes": "changes = 3", "values": "boolean = true"}.get(key, "")
    lines = "\n".join(line for line in TREND.splitlines() if line != replaced)
    with pytest.raises(DefinitionError, match=re.escape(message)):
        parse_definition(f"{lines}\n{line}")


def test_changes_are_for_trends_alone() -> None:
    with pytest.raises(DefinitionError, match=r'only for measure = "trend": remove it'):
        parse_definition("boolean = true\nchanges = 1")
    with pytest.raises(DefinitionError, match=r"changes = .missing.: give how often"):
        parse_definition('boolean = true\nmeasure = "trend"')
