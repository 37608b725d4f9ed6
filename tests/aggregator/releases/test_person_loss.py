"""What releases reveal of one person: every choice of periods is within the figure."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from veilcount_analysis.releases.noise_kinds import NoiseKind
from veilcount_analysis.releases.person_loss import person_losses, person_spent
from veilcount_analysis.releases.price import Accounting, ReleaseCost, period_budget
from veilcount_analysis.releases.sensitivity import person_contributions
from veilcount_analysis.releases.zcdp import epsilon_of_rho, rho_budget
from veilcount_shared import Collection
from veilcount_shared.domain import Boolean
from veilcount_shared.periods import Unit

from .release_fixtures import ADD_REMOVE, SUBSTITUTE, collection, whole

DELTA = Fraction(1, 10**6)
RELEASES = [(range(3), 3), (range(1, 2), 7), (range(4, 10), 2), (range(12), 1), (range(11, 12), 9)]


def weekly(answers: int | None, delta: Fraction | None = None) -> Collection:
    return collection(Boolean(), unit=Unit.WEEK, answers=answers, delta=delta)


def several(answers: int, delta: Fraction | None = None) -> Collection:
    return collection(Boolean(), unit=Unit.EVENT, per_day=3, answers=answers, delta=delta)


def spends(each: Collection, kind: NoiseKind) -> list[Fraction]:
    """What each period is charged by some releases of periods, at several prices."""
    grain = Accounting.of_collection(each).grain
    spent = [Fraction(0)] * 12
    for periods, price in RELEASES:
        charge = ReleaseCost(kind, Fraction(price, 1000)).charge(each, periods)
        for period in periods:
            spent[period] += Fraction(charge, grain)
    return spent


def losses(each: Collection, *, squared: bool) -> list[Fraction]:
    """What each choice of periods loses: k units in one release lose k epsilon, or k^2 rho."""
    found = []
    for chosen in combinations(range(12), min(12, each.answering)):
        units = [each.per_day * len(set(chosen) & set(periods)) for periods, _ in RELEASES]
        found.append(
            sum(
                Fraction(k ** (2 if squared else 1) * price, 1000)
                for k, (_, price) in zip(units, RELEASES, strict=True)
            )
        )
    return [Fraction(each) for each in found]


@pytest.mark.parametrize("answers", [1, 2, 5])
@pytest.mark.parametrize("form", [weekly, several])
def test_no_choice_of_periods_loses_more_than_the_figure(
    form: Callable[..., Collection], answers: int
) -> None:
    pure, smooth = form(answers), form(answers, DELTA)
    gaussian = spends(smooth, NoiseKind.GAUSSIAN)

    assert person_spent(pure, spends(pure, NoiseKind.LAPLACE)) == max(losses(pure, squared=False))
    assert person_spent(smooth, gaussian) >= max(losses(smooth, squared=True))
    assert person_contributions(pure, range(12)) == answers * pure.per_day


def test_epsilon_and_rho_are_inverse_and_rounded_upwards() -> None:
    for epsilon in ("0.1", "1", "4"):
        back = epsilon_of_rho(rho_budget(Fraction(epsilon), DELTA), DELTA)

        assert float(back) == pytest.approx(float(epsilon), rel=1e-5)
        assert rho_budget(back, DELTA) >= rho_budget(Fraction(epsilon), DELTA)


def test_losses_add_up_by_adjacency_and_are_converted_once() -> None:
    """A person in two collections in rho loses less than the sum of both epsilons."""
    pure = collection(Boolean(), answers=2)
    smooth = [collection(whole(0, high), answers=3, delta=DELTA) for high in (3, 4)]
    old = collection(Boolean(), SUBSTITUTE, answers=1)
    spent = {
        pure: [Fraction(1), Fraction(1, 2), Fraction(1, 4)],
        smooth[0]: [Fraction(1, 100)] * 3,
        smooth[1]: [Fraction(0)] * 3,
        old: [Fraction(1, 3)] * 3,
    }
    one, two = person_losses(spent, [pure, *smooth])

    assert (one.adjacency, two.adjacency) == (ADD_REMOVE, SUBSTITUTE)
    assert (one.epsilon, one.rho, one.delta) == (Fraction(3, 2), Fraction(3, 100), 2 * DELTA)
    assert one.most_epsilon == 4 + epsilon_of_rho(6 * period_budget(smooth[0]), 2 * DELTA)
    assert one.most_epsilon < 4 + 3 * 2 + 3 * 2
    assert (two.most_epsilon, two.delta) == (Fraction(1, 3), Fraction(0))  # it can be spent no more


def test_what_was_restored_above_a_budget_counts() -> None:
    pure = collection(Boolean(), answers=1)
    (loss,) = person_losses({pure: [Fraction(3)] * 3}, [pure])

    assert loss.epsilon == loss.most_epsilon == 3
    assert np.isclose(float(period_budget(pure)), 2)
