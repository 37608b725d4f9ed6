"""Kinds of question: figures without a server, and the options of their simulations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NoReturn

import numpy as np
import pytest

from veilcount_analysis.errors import QueryError
from veilcount_analysis.kinds.estimate import SeriesData, estimate_series
from veilcount_analysis.kinds.estimate_query import EstimateQuery
from veilcount_analysis.kinds.registry import KINDS, kind_of
from veilcount_analysis.kinds.scope import Scope
from veilcount_analysis.kinds.source import Tally
from veilcount_analysis.mechanisms import estimate_shares
from veilcount_analysis.query_params import params
from veilcount_analysis.series.series import Series
from veilcount_analysis.simulation import simulate
from veilcount_analysis.simulation.simulated_figures import SimulationQuery
from veilcount_shared import Collection

from ..estimation.collection_fixtures import of_values

TODAY = date(2027, 6, 1)


@dataclass(frozen=True)
class Arrays:
    """The counters of a notebook."""

    counters: Any

    def tally(self, periods: range, cells: Sequence[int]) -> Tally:
        return Tally(self.counters)

    def counters_by_period(self, periods: range, cells: Sequence[int]) -> Any:
        return np.stack([self.counters for _ in periods])

    def is_over(self, period: int) -> bool:
        return True

    @property
    def searches(self) -> NoReturn:
        raise AssertionError("values are listed, so nothing is searched")


def estimated(collection: Collection, counters: Any) -> Any:
    kind, query, series = kind_of(collection), EstimateQuery(), Series(collection)
    scope = Scope.from_query(series, query, TODAY)
    return estimate_series(kind, query, SeriesData.load(kind, Arrays(counters), query, scope))


def test_figures_come_from_arrays_without_a_server() -> None:
    collection = of_values(3)
    counters = simulate(collection, np.array([600, 300, 100]), np.random.default_rng(1))

    (estimate,) = estimated(collection, counters).ranges
    result = estimate.result
    shares: Any = estimate_shares(collection, counters)

    assert [figure.figure for figure in result.figures] == shares.frequency.tolist()
    assert [figure.low for figure in result.figures] == shares.low.tolist()
    assert result.n == 1000


SIMULATIONS = list(dict.fromkeys(kind.simulation for kind in KINDS.values() if kind.simulation))


@pytest.mark.parametrize("query", SIMULATIONS, ids=lambda query: query.subject)
def test_a_simulation_needs_devices_and_refuses_the_options_of_other_kinds(
    query: type[SimulationQuery],
) -> None:
    others = {param.name for simulation in SIMULATIONS for param in params(simulation)}

    with pytest.raises(QueryError, match=r"^n = .*: give it once"):
        query.parse({})
    for option in sorted(others - {param.name for param in params(query)}):
        with pytest.raises(QueryError, match=rf"^{option} = "):
            query.parse({"n": ["10"], option: ["1"]})
    assert query.parse({"n": ["10"]}).n == 10
