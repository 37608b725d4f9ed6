"""What `veilcount simulate` prints of values or a mean: local estimates with a curator's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random import Generator

from veilcount_analysis.kinds.labels import value_at
from veilcount_analysis.simulation import SimulatedEstimate, Simulation, compare_local_and_central
from veilcount_analysis.text import number_format
from veilcount_analysis.text.result_columns import spelled
from veilcount_shared import Collection
from veilcount_shared.domain import Number

from .population_option import simulate_population
from .simulation_table import SimulationOptions, SimulationTable

COLUMNS = ("value", "truth", "local", "interval", "central", "interval")
MEAN = "mean"


def simulated_values(
    collection: Collection, options: SimulationOptions, generator: Generator
) -> SimulationTable:
    """Estimate one population locally, and by a trusted curator."""
    people = simulate_population(collection, options.n, options.truth)
    found = compare_local_and_central(collection, people, generator, options.level)
    rows, shares = list(_rows(collection, found, options.top)), not _is_number(collection)
    held = sum(row["local"]["low"] <= row["truth"] <= row["local"]["high"] for row in rows)
    return SimulationTable(
        facts={"values": rows},
        columns=COLUMNS,
        rows=[tuple(_cells(row, shares=shares)) for row in rows],
        closing=(f"the truth is in {held} of {len(rows)} local intervals shown",),
    )


def _is_number(collection: Collection) -> bool:
    return isinstance(collection.domain, Number)


def _rows(collection: Collection, found: Simulation, top: int) -> Iterator[dict[str, Any]]:
    """Yield the rows, the most common value first."""
    number = _is_number(collection)
    size = 1 if number else collection.domain.size
    for place in np.argsort(-found.truth[:size], kind="stable")[:top].tolist():
        yield {
            "value": MEAN if number else value_at(collection, place),
            "truth": float(found.truth[place]),
            "local": _interval(found.local, place),
            "central": _interval(found.central, place),
        }


def _interval(figures: SimulatedEstimate, place: int) -> dict[str, float]:
    value, low, high = (float(each[place]) for each in (figures.value, figures.low, figures.high))
    return {"value": value, "low": low, "high": high}


def _cells(row: dict[str, Any], *, shares: bool) -> Iterator[str]:
    yield spelled(row["value"]) or ""
    yield number_format.figure(row["truth"], of_shares=shares)
    for model in ("local", "central"):
        estimate = row[model]
        yield number_format.figure(estimate["value"], of_shares=shares)
        yield number_format.interval(estimate["low"], estimate["high"], of_shares=shares)
