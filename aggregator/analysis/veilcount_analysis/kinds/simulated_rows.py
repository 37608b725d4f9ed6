"""Rows of figures of a known population with the true ones; among covers, again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from veilcount_shared import Collection

from ..estimation import IntervalTarget
from ..simulation.batch_models import BatchModel, batch_models, covers_line, run_count
from ..simulation.simulated_figures import SimulatedFigures, SimulationQuery
from ..text import number_format
from ..text.result_columns import value_name
from ..text.view_parts import Table
from .results import SEPARATOR, Figure

RUNS = 100


Rows = Sequence[Figure]


@dataclass(frozen=True, slots=True)
class SimulatedModel:
    """The figures of a model in each run, next to the true ones."""

    model: BatchModel
    truth: Rows
    runs: Sequence[Rows]

    def interval_hits(self, runs: int | None = None) -> tuple[int, int]:
        """Return how many intervals of the first runs hold the truth, and how many are stated."""
        pairs = [pair for run in self.runs[:runs] for pair in zip(self.truth, run, strict=True)]
        stated = [
            row.low <= (true.figure or 0) <= row.high
            for true, row in pairs
            if row.low is not None and row.high is not None
        ]
        return sum(stated), len(stated)

    def errors(self, typical: str) -> dict[str, Any]:
        """Return how far figures of a kind are off, and how many intervals hold the truth."""
        off = [
            (row.figure or 0) - (true.figure or 0)
            for run in self.runs
            for true, row in zip(self.truth, run, strict=True)
            if row.kind == typical and row.figure is not None
        ]
        hits, stated = self.interval_hits()
        return {
            "model": self.model.name,
            "epsilon": self.model.epsilon,
            "error": float(np.sqrt(np.mean(np.square(off)))) if off else None,
            "coverage": hits / stated if stated else None,
        }


@dataclass(frozen=True, slots=True)
class DrawnRows:
    """What is drawn again and again: the true figures, those of a model's reports, and facts.

    `typical` is the kind of figure whose error is averaged: all of them have one unit.
    """

    truth: Rows
    estimate: Callable[[BatchModel], Rows]
    facts: Mapping[str, Any]
    key: str
    typical: str


def simulate_rows(
    collection: Collection, query: SimulationQuery, requested_runs: int | None, drawn: DrawnRows
) -> SimulatedFigures:
    """Estimate the figures of a known population, among covers many times."""
    models = batch_models(collection)
    runs = run_count(models, requested_runs, RUNS)
    results = [
        SimulatedModel(model, drawn.truth, [drawn.estimate(model) for _ in range(runs)])
        for model in models
    ]
    hits, stated = results[0].interval_hits(1)
    facts: dict[str, Any] = {**drawn.facts, drawn.key: _rows(results)}
    errors = [result.errors(drawn.typical) for result in results]
    if models[0].covers:
        facts |= {"runs": runs, "errors": errors}
    closing = f"the truth is in {hits} of {stated} intervals stated"
    return SimulatedFigures(
        n=query.n,
        level=query.level,
        facts=facts,
        table=_table(results),
        closing=(closing, *covers_line(collection)),
        target=IntervalTarget.POPULATION,
        errors=_error_table(errors, runs, drawn.typical) if models[0].covers else None,
    )


def _rows(results: Sequence[SimulatedModel]) -> list[dict[str, Any]]:
    """Return the figures of the first run: of one model in a row itself, else by model."""
    rows: list[dict[str, Any]] = []
    for place, true in enumerate(results[0].truth):
        row = {"kind": true.kind, "of": _names(true), "truth": true.figure or 0.0}
        estimates = {result.model.name: _ends(result.runs[0][place]) for result in results}
        (own, *others) = estimates.values()
        rows.append(row | (estimates if others else own))
    return rows


def _names(row: Figure) -> object:
    """Return a figure's value; of several names, which are one text, each."""
    return row.of.split(SEPARATOR) if isinstance(row.of, str) else row.of


def _ends(row: Figure) -> dict[str, float | None]:
    return {"figure": row.figure, "low": row.low, "high": row.high}


def _table(results: Sequence[SimulatedModel]) -> Table:
    columns = (name for result in results for name in (result.model.name, "interval"))
    lines = [
        (
            true.kind,
            value_name(true.of),
            f"{true.figure or 0:,.6g}",
            *(cell for result in results for cell in _cells(result.runs[0][place])),
        )
        for place, true in enumerate(results[0].truth)
    ]
    return Table("", ("figure", "of", "truth", *columns), lines)


def _cells(row: Figure) -> tuple[str, str]:
    if row.figure is None or row.low is None or row.high is None:
        return "not stated", ""
    low, high = (number_format.precise(end, row.low, row.high) for end in (row.low, row.high))
    return number_format.precise(row.figure, row.low, row.high), f"{low} to {high}"


def _error_table(errors: Sequence[dict[str, Any]], runs: int, typical: str) -> Table:
    rows = [
        (
            row["model"],
            number_format.epsilon(row["epsilon"]),
            "" if row["error"] is None else f"{row['error']:.3f}",
            "" if row["coverage"] is None else f"{row['coverage']:.1%}",
        )
        for row in errors
    ]
    columns = ("model", "epsilon", f"error of {typical}s", "intervals with the truth")
    return Table(f"Over {runs:,} batches, all figures together", columns, rows)
