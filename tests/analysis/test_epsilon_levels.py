"""One user epsilon shared out over events, days, weeks and months."""

from __future__ import annotations

from fractions import Fraction

import pytest

from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.privacy.budget import UnitComparison, levels
from veilcount_shared import Collection
from veilcount_shared.periods import Unit

from ..aggregator.aggregator_fixtures import make_collection


def shared_out(collection: Collection, n: int, user: Fraction | None = None) -> UnitComparison:
    return levels(collection, kind_of(collection).quantity, n, user=user)


def test_one_user_epsilon_is_shared_out_and_the_longer_the_unit_the_better() -> None:
    """12 for a year: 1 a month; per event far less; nothing is overspent.

    Under one user epsilon, locally and with a curator: day >= week >= month >= user.
    """
    table = shared_out(make_collection(), 10**5)
    by_unit = {row.unit: row for row in table.rows}
    local = [row.local_campaign.rmse for row in table.rows if row.local_campaign]
    central = [row.central_period.rmse for row in table.rows]

    assert by_unit[Unit.MONTH].epsilon == 1
    assert by_unit[Unit.USER].epsilon == 12
    assert all(row.user is not None and row.user <= table.user == 12 for row in table.rows)
    assert local == sorted(local, reverse=True)
    assert central == sorted(central, reverse=True)
    assert all(row.central_campaign.rmse < min(local) for row in table.rows)
    assert len({row.stops for row in table.rows}) == len(table.rows) == 5
    assert len({row.does_not_stop for row in table.rows}) == 5
    assert all(row.guess_one and row.guess_one <= (row.guess_all or 0) for row in table.rows)


def test_a_user_epsilon_that_cannot_be_shared_out_gives_no_local_answer() -> None:
    event = shared_out(make_collection(), 1000, user=Fraction(1, 10**5)).rows[0]

    assert event.epsilon is None
    assert event.local_period is None
    assert event.central_period.rmse > 1


@pytest.mark.parametrize(("adjacency", "user"), [("substitute", 24), ("add-remove", 48)])
def test_units_are_compared_under_one_adjacency(adjacency: str, user: int) -> None:
    """A curator's budget of 2 for each of 12 months; between values add-remove counts twice."""
    table = shared_out(
        make_collection(epsilon=None, model='"central"', budget=2, adjacency=f'"{adjacency}"'), 99
    )

    assert (table.user, table.adjacency) == (Fraction(user), "substitute")
