"""Any of devices, epsilon and error from the other two; and the definition that gives them."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from itertools import product
from math import isclose, sqrt
from typing import Any

import pytest

from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.mechanisms import handler_of
from veilcount_analysis.planning import PlanResult, QuestionShape, TrustedParty, plan
from veilcount_analysis.privacy.shuffled import cover_delta, shuffled_error
from veilcount_analysis.privacy.trust_models import ErrorEstimate
from veilcount_shared import parse_collections
from veilcount_shared.collection import Measure, Model
from veilcount_shared.mechanisms import Identity
from veilcount_shared.periods import Unit

from .planned_questions import FEATURES, ONE, QUESTIONS, START, STRINGS, TABLES, pasted, yes_or_no

STEP = Fraction(1, 10**6)
TICKED = [yes_or_no(values=None, several=12, most=3), yes_or_no(values=None, several=5, arms=2)]
#: those that travel by a shuffler: one batch a period, which is not split
MIXED = [q for q in QUESTIONS + TICKED if q.arms == 1 and q.unit is not Unit.EVENT]
#: a curator has no query of ranges, nor of several values
CASES = [
    (question, trust)
    for question, trust in product(QUESTIONS + TICKED, TrustedParty)
    if trust is not TrustedParty.CENTRAL
    or (question.measure is not Measure.RANGES and question.several is None)
    if trust is not TrustedParty.SHUFFLED or question in MIXED
]


def width(question: QuestionShape) -> float:
    return 0.02 * question.quantity.width


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("question", "trust"), CASES, ids=str)
def test_the_error_that_devices_and_epsilon_give_needs_them(
    question: QuestionShape, trust: TrustedParty
) -> None:
    numbers = plan(question, trust=trust, devices=20_000, epsilon=ONE)
    error = numbers.error.half_width
    devices = plan(question, trust=trust, epsilon=ONE, error=error)
    epsilon = plan(question, trust=trust, devices=20_000, error=error)

    assert (numbers.found, devices.found, epsilon.found) == ("error", "devices", "epsilon")
    assert devices.devices <= 20_000
    assert epsilon.epsilon <= 1
    assert max(devices.error.half_width, epsilon.error.half_width) <= error


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("question", "trust"), [each for each in CASES if each[1] is not TrustedParty.SHUFFLED], ids=str
)
def test_a_millionth_or_device_less_is_too_few(
    question: QuestionShape, trust: TrustedParty
) -> None:
    error = width(question)
    few = plan(question, trust=trust, epsilon=ONE, error=error)
    low = plan(question, trust=trust, devices=20_000, error=error)
    fewer = plan(question, trust=trust, devices=few.devices - question.arms, epsilon=ONE)
    lower = plan(question, trust=trust, devices=20_000, epsilon=low.epsilon - STEP)

    assert few.error.half_width <= error < fewer.error.half_width
    assert low.error.half_width <= error < lower.error.half_width


@pytest.mark.parametrize("question", MIXED, ids=str)
def test_a_shuffled_plan_is_hidden_by_its_covers_alone(question: QuestionShape) -> None:
    """One cover less would not be enough: then nothing is counted on but covers."""
    for numbers in ({"epsilon": ONE}, {"devices": 20_000}):
        planned = plan(question, trust=TrustedParty.SHUFFLED, error=width(question), **numbers)
        mechanism = pasted(question, planned).mechanism
        overlaps, at = handler_of(mechanism).overlaps(), float(planned.epsilon)
        assert planned.batch is not None

        assert planned.device == 4
        assert cover_delta(overlaps, planned.batch.covers, at) <= planned.delta
        assert cover_delta(overlaps, planned.batch.covers - 1, at) > planned.delta


def needed(**question: Any) -> int:
    trust = question.pop("trust", TrustedParty.LOCAL)
    return plan(yes_or_no(**question), trust=trust, epsilon=ONE, error=0.01).devices


def test_devices_follow_values_trust_arms_and_level() -> None:
    """n = V (1.96 / 0.01)^2 at epsilon 1; half of the devices, and two noises, in each arm."""
    by_trust = [needed(trust=trust) for trust in TrustedParty]

    assert isclose(needed(values=256), 1.4e5, rel_tol=0.01)
    assert by_trust == sorted(by_trust, reverse=True)
    assert needed(arms=2) % 2 == 0
    assert abs(needed(arms=2) - 4 * needed()) <= 8
    assert isclose(needed(level=0.99) / needed(), (2.5758 / 1.96) ** 2, rel_tol=1e-3)


def test_reweighted_shares_need_as_many_more_devices_as_the_design_effect_says() -> None:
    question = yes_or_no(design_effect=1.7)
    planned = plan(question, devices=17_000, epsilon=ONE)
    same = plan(yes_or_no(), devices=10_000, epsilon=ONE)

    assert isclose(needed(design_effect=1.7), 1.7 * needed(), rel_tol=1e-3)
    assert planned.error.half_width == same.error.half_width
    assert planned.population.half_width == same.population.half_width
    assert planned.detectable == same.detectable
    assert planned.over_time == ()
    assert "margins" in planned.toml
    assert pasted(question, planned).cells == 1


@pytest.mark.parametrize("trust", [TrustedParty.LOCAL, TrustedParty.SHUFFLED])
@pytest.mark.parametrize(
    ("question", "key"), [(STRINGS, "share"), (FEATURES, "error"), (TABLES, "error")]
)
def test_strings_features_and_tables_are_planned_from_any_two(
    question: QuestionShape, key: str, trust: TrustedParty
) -> None:
    def figure(planned: PlanResult) -> float:
        return planned.error.half_width if key == "error" else planned.detectable or 1.0

    numbers = plan(question, trust=trust, devices=10**5, epsilon=ONE)
    goal: dict[str, Any] = {key: figure(numbers)}
    devices = plan(question, trust=trust, epsilon=ONE, **goal)
    epsilon = plan(question, trust=trust, devices=10**5, **goal)

    assert (numbers.found, devices.found, epsilon.found) == (key, "devices", "epsilon")
    assert devices.devices == pytest.approx(10**5, rel=1e-3)
    assert float(epsilon.epsilon) == pytest.approx(1, abs=0.01)
    assert max(figure(devices), figure(epsilon)) <= goal[key]
    (made,) = parse_collections(numbers.toml, lambda _: []).values()
    assert made.mechanism == question.quantity.family(made.unit_epsilon)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("question", "trust"), CASES, ids=str)
def test_the_definition_gives_planned_numbers(question: QuestionShape, trust: TrustedParty) -> None:
    planned = plan(question, trust=trust, devices=20_000, error=width(question))
    collection = pasted(question, planned)
    quantity, each = kind_of(collection).quantity, 20_000 // question.arms

    assert collection.unit_epsilon == (planned.device or planned.epsilon)
    assert collection.model == str(trust)
    assert collection.periods == question.number_of_periods == planned.composition.answers
    assert collection.cells == question.arms
    assert collection.epsilon_user == planned.composition.plain
    if trust is TrustedParty.CENTRAL:
        assert collection.model is Model.CENTRAL
        assert isinstance(collection.mechanism, Identity)
        error = quantity.central(collection.unit_epsilon, each, question.level)
    else:
        assert collection.message_bits == planned.bits
        error = quantity.local(collection.unit_epsilon, each, question.level)
    if planned.batch is not None:
        rmse = shuffled_error(collection.randomizer, each, planned.batch.covers) * quantity.width
        error = ErrorEstimate(rmse, rmse)
    assert isclose(planned.error.rmse, error.rmse * sqrt(question.arms))


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("start", [START, date(2027, 2, 17)])
def test_a_campaign_has_the_planned_periods_from_any_day_on(unit: Unit, start: date) -> None:
    question = yes_or_no(start=start, unit=unit)
    collection = pasted(question, plan(question, devices=1000, epsilon=ONE))

    assert collection.periods == question.number_of_periods
    assert collection.start == start
