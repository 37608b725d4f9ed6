"""Kinds of question: figures without a server, and the options of their simulations."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest

from veilcount_analysis.counts import CountersSource, estimate_counters
from veilcount_analysis.errors import QueryError
from veilcount_analysis.kinds.registry import KINDS
from veilcount_analysis.mechanisms import estimate_shares
from veilcount_analysis.query_params import params
from veilcount_analysis.series.series import Series
from veilcount_analysis.simulation import simulate
from veilcount_analysis.simulation.simulated_figures import SimulationQuery
from veilcount_shared import Collection

from ..estimation.collection_fixtures import of_values

TODAY = date(2027, 6, 1)


def estimated(collection: Collection, counters: Any) -> Any:
    return estimate_counters(CountersSource(Series(collection), {(0, 0): counters}, TODAY))


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
