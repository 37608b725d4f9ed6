"""The plan of a shuffled question: two of devices, central epsilon and error give the third."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from veilcount_analysis.errors import QueryError
from veilcount_analysis.planning import BatchTerms, PlanResult, QuestionShape, TrustedParty, plan
from veilcount_analysis.planning.batches import HABITS, BatchPlan, grace_losses, lost_part
from veilcount_analysis.privacy.shuffled import composed_epsilon, least_covers, shuffled_error
from veilcount_shared.collection import Measure
from veilcount_shared.mechanisms import MeanMechanism, SubsetSelection

ONE, FOUR = Fraction(1), Fraction(4)
DELTA = Fraction(1, 10**6)
Z = NormalDist().inv_cdf(0.975)
MIXED = SubsetSelection.for_epsilon(FOUR, 4, 1)


def question(**more: object) -> QuestionShape:
    shape = {"values": 3, **more}
    return QuestionShape(start=date(2026, 12, 1), **shape)  # type: ignore[arg-type] # by name


def shuffled(shape: QuestionShape, **numbers: object) -> PlanResult:
    return plan(shape, trust=TrustedParty.SHUFFLED, **numbers)  # type: ignore[arg-type] # by name


def batch_of(planned: PlanResult) -> BatchPlan:
    assert planned.batch is not None
    return planned.batch


def test_devices_and_epsilon_give_the_error_with_the_cell_of_absence() -> None:
    planned = shuffled(question(), devices=1_000, epsilon=ONE)
    public = shuffled(question(batch=BatchTerms(public=True)), devices=1_000, epsilon=ONE)

    assert batch_of(planned).covers == 142
    assert planned.error.rmse == shuffled_error(MIXED, 1_000, 142)
    assert planned.error.half_width == pytest.approx(Z * planned.error.rmse)
    assert batch_of(public).covers == 110


@pytest.mark.parametrize("shape", [{}, {"values": None, "range": (Fraction(0), Fraction(240))}])
def test_the_third_of_any_two_is_the_least_that_will_do(shape: dict[str, object]) -> None:
    numbers = question(**shape)
    goal = shuffled(numbers, devices=2_000, epsilon=ONE).error.half_width
    fewest = shuffled(numbers, epsilon=ONE, error=goal)
    least = shuffled(numbers, devices=2_000, error=goal)
    finer = shuffled(numbers, devices=2_000, epsilon=least.epsilon - Fraction(1, 100))

    assert fewest.devices == 2_000
    assert least.epsilon <= ONE
    assert least.error.half_width <= goal < finer.error.half_width
    assert shuffled(numbers, devices=1_999, epsilon=ONE).error.half_width > goal


def test_open_strings_need_a_larger_share_than_without_covers() -> None:
    strings = question(values=None, candidates=1_000)
    among = shuffled(strings, devices=1_000, epsilon=ONE)
    alone = plan(strings, devices=1_000, epsilon=FOUR)

    assert among.detectable is not None
    assert alone.detectable is not None
    assert among.detectable > 1.1 * alone.detectable
    assert shuffled(strings, epsilon=ONE, share=among.detectable).devices == 1_000


def test_a_number_has_errors_in_its_own_units() -> None:
    shape = question(values=None, range=(Fraction(0), Fraction(240)), measure=Measure.MEAN)
    mechanism = MeanMechanism.for_epsilon(FOUR)
    covers = least_covers(mechanism, ONE, DELTA)
    planned = shuffled(shape, devices=1_000, epsilon=ONE)

    assert batch_of(planned).covers == covers == 142
    assert planned.error.rmse == 240 * shuffled_error(mechanism, 1_000, covers)


def test_both_costs_stand_apart_and_periods_compose() -> None:
    batch = batch_of(shuffled(question(), devices=1_000, epsilon=ONE))
    composed = composed_epsilon(MIXED, 142, 12, DELTA)

    assert [batch.together, batch.together_in_all] == [4, 48]
    assert batch.server == 1
    assert composed <= batch.server_in_all < composed + Fraction(1, 100)
    assert batch.guess == pytest.approx(0.544, abs=5e-4)
    assert batch.unlucky == pytest.approx(0.731, abs=5e-4)


def test_the_selected_mechanism_errs_least_with_its_covers() -> None:
    """Planted: one value more in the subset takes fewer covers, and errs more all the same."""
    own, other = batch_of(shuffled(question(), devices=1_000, epsilon=ONE)).mechanisms

    assert (own.selected, other.selected) == (True, False)
    assert other.covers < own.covers
    assert own.error < other.error


@pytest.mark.parametrize(("devices", "least"), [(150, 100), (1_000, 500), (10**6, 1_000)])
def test_a_batch_asks_for_fewer_reports_than_there_are_devices(devices: int, least: int) -> None:
    assert batch_of(shuffled(question(), devices=devices, epsilon=ONE)).least == least


# -- who is lost by the grace ----------------------------------------------------------------------


def test_who_is_lost_is_the_design_s_table() -> None:
    lost = [round(loss.lost, 3 if loss.lost < 0.01 else 2) for loss in grace_losses()]

    assert lost == [0.09, 0.004, 0.0, 0.44, 0.15, 0.02, 0.70, 0.44, 0.19]


def simulated_part(grace: float, days: float, share: float, n: int = 200_000) -> float:
    """Draw instants from a first part of the grace, and the first start after each."""
    generator = np.random.default_rng(36)
    instants = generator.uniform(0, grace * share, n)
    return float(np.mean(instants + generator.exponential(days, n) > grace))


@pytest.mark.parametrize("days", HABITS.values())
@pytest.mark.parametrize("grace", [3, 7, 14])
def test_who_is_lost_is_what_a_simulation_finds(grace: int, days: int) -> None:
    """Within 5 standard errors. Planted: instants from the whole grace lose far more."""
    part = lost_part(grace, days)
    noise = 5 * (part * (1 - part) / 200_000) ** 0.5 + 1e-5

    assert abs(simulated_part(grace, days, 1 / 3) - part) < noise
    assert simulated_part(grace, days, 1) - part > noise


@pytest.mark.parametrize(
    ("more", "numbers"),
    [
        ({}, {"devices": 1_000}),
        ({}, {"devices": 1_000, "epsilon": ONE, "error": 0.01}),
        ({}, {"devices": 1_000, "epsilon": FOUR}),
        ({}, {"devices": 1_000, "error": -0.01}),
        ({}, {"devices": 1_000, "error": 0.001}),
        ({"arms": 2}, {"devices": 1_000, "epsilon": ONE}),
        ({"batch": BatchTerms(report_epsilon=Fraction(5))}, {"devices": 1_000, "epsilon": ONE}),
    ],
)
def test_what_no_batch_reaches_is_refused(more: dict[str, int], numbers: dict[str, object]) -> None:
    with pytest.raises(QueryError):
        shuffled(question(**more), **numbers)
