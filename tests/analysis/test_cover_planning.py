"""The plan of a shuffled question: two of devices, central epsilon and error give the third."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

import pytest

from veilcount_analysis.errors import QueryError
from veilcount_analysis.planning import CoverPlan, QuestionShape, cover_plan
from veilcount_analysis.privacy.shuffled import least_covers, shuffled_error
from veilcount_shared.collection import Measure
from veilcount_shared.mechanisms import MeanMechanism, SubsetSelection

ONE, FOUR = Fraction(1), Fraction(4)
DELTA = Fraction(1, 10**6)


def question(**more: object) -> QuestionShape:
    shape = {"values": 3, **more}
    return QuestionShape(start=date(2026, 12, 1), **shape)  # type: ignore[arg-type] # by name


def test_devices_and_epsilon_give_the_error_with_the_cell_of_absence() -> None:
    plan = cover_plan(question(), devices=1_000, epsilon=ONE)
    error = shuffled_error(SubsetSelection.for_epsilon(FOUR, 4, 1), 1_000, 142)

    assert plan == CoverPlan(1_000, ONE, DELTA, FOUR, 142, error)
    assert cover_plan(question(), devices=1_000, epsilon=ONE, hidden=False).covers == 110


@pytest.mark.parametrize("shape", [{}, {"values": None, "range": (Fraction(0), Fraction(240))}])
def test_the_third_of_any_two_is_the_least_that_will_do(shape: dict[str, object]) -> None:
    numbers = question(**shape)
    plan = cover_plan(numbers, devices=2_000, epsilon=ONE)
    fewest = cover_plan(numbers, epsilon=ONE, error=plan.error)
    least = cover_plan(numbers, devices=2_000, error=plan.error)
    finer = cover_plan(numbers, devices=2_000, epsilon=least.epsilon - Fraction(1, 100))

    assert fewest.devices == 2_000
    assert least.epsilon <= ONE
    assert least.error <= plan.error < finer.error
    assert cover_plan(numbers, devices=1_999, epsilon=ONE).error > plan.error


def test_an_error_may_be_relative_to_a_share() -> None:
    relative = cover_plan(question(), epsilon=ONE, error=0.1, share=0.05)

    assert relative == cover_plan(question(), epsilon=ONE, error=0.005)


def test_a_number_has_errors_in_its_own_units() -> None:
    shape = question(values=None, range=(Fraction(0), Fraction(240)), measure=Measure.MEAN)
    mechanism = MeanMechanism.for_epsilon(FOUR)
    covers = least_covers(mechanism, ONE, DELTA)

    plan = cover_plan(shape, devices=1_000, epsilon=ONE)
    assert plan.covers == covers == 142
    assert plan.error == 240 * shuffled_error(mechanism, 1_000, covers)


@pytest.mark.parametrize(
    ("more", "numbers"),
    [
        ({}, {"devices": 1_000}),
        ({}, {"devices": 1_000, "epsilon": ONE, "error": 0.01}),
        ({}, {"devices": 1_000, "epsilon": Fraction(0)}),
        ({}, {"devices": 1_000, "error": -0.01}),
        ({}, {"devices": 1_000, "error": 0.001}),
        ({"arms": 2}, {"devices": 1_000, "epsilon": ONE}),
    ],
)
def test_what_no_batch_reaches_is_refused(more: dict[str, int], numbers: dict[str, object]) -> None:
    with pytest.raises(QueryError):
        cover_plan(question(**more), **numbers)  # type: ignore[arg-type] # by name
