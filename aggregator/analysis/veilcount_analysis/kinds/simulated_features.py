"""Moments of a known population with the true ones; of a batch among covers, again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection

from ..errors import QueryError
from ..estimation import IntervalTarget
from ..mechanisms.moments import moments_handler
from ..simulation.batch_models import BatchModel, batch_models, covers_line, run_count
from ..simulation.correlated_numbers import FeaturesSimulation, simulate_numbers, true_moments
from ..simulation.simulated_figures import SimulatedFigures
from ..text import number_format
from ..text.view_parts import Table
from .moment_figures import SEPARATOR, MomentTerms, features_of, moment_figures
from .results import Figure

RUNS = 100
ERRORS = ("model", "epsilon", "error of correlations", "intervals with the truth")

Moments = Sequence[Figure]


@dataclass(frozen=True, slots=True)
class SimulatedModel:
    """The moments of a model in each run, next to the true ones."""

    model: BatchModel
    truth: Moments
    runs: Sequence[Moments]

    def interval_hits(self, runs: int | None = None) -> tuple[int, int]:
        """Return how many intervals of the first runs hold the truth, and how many are stated."""
        pairs = [pair for run in self.runs[:runs] for pair in zip(self.truth, run, strict=True)]
        stated = [
            row.low <= (true.figure or 0) <= row.high
            for true, row in pairs
            if row.low is not None and row.high is not None
        ]
        return sum(stated), len(stated)

    def errors(self) -> dict[str, Any]:
        """Return how far correlations are off, which have no unit, and the intervals' coverage."""
        off = [
            (row.figure or 0) - (true.figure or 0)
            for run in self.runs
            for true, row in zip(self.truth, run, strict=True)
            if row.kind == "correlation" and row.figure is not None
        ]
        hits, stated = self.interval_hits()
        return {
            "model": self.model.name,
            "epsilon": self.model.epsilon,
            "error": float(np.sqrt(np.mean(np.square(off)))) if off else None,
            "coverage": hits / stated if stated else None,
        }


def simulate_features(
    collection: Collection, query: FeaturesSimulation, generator: Generator
) -> SimulatedFigures:
    """Estimate moments of a population whose true ones follow from its correlation."""
    domain, models = features_of(collection), batch_models(collection)
    runs = run_count(models, query.runs, RUNS)
    terms = MomentTerms(query.level, regress=query.regress)
    truth = tuple(moment_figures(domain, true_moments(collection, query.correlation), terms))

    def moments(model: BatchModel) -> Moments:
        reports = simulate_numbers(model.collection, query.n, query.correlation, generator)
        counters = model.among_covers(reports, generator)
        means = moments_handler(model.collection).means(counters, model.covers)
        if not means.complete:
            raise QueryError("n", query.n, "too few for a report of each moment")
        return tuple(moment_figures(domain, means, terms))

    results = [
        SimulatedModel(model, truth, [moments(model) for _ in range(runs)]) for model in models
    ]
    hits, stated = results[0].interval_hits(1)
    facts: dict[str, Any] = {"correlation": query.correlation, "moments": _rows(results)}
    errors = [result.errors() for result in results]
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
        errors=_error_table(errors, runs) if models[0].covers else None,
    )


def _rows(results: Sequence[SimulatedModel]) -> list[dict[str, Any]]:
    """Return the moments of the first run: of one model in a row itself, else by model."""
    rows: list[dict[str, Any]] = []
    for place, true in enumerate(results[0].truth):
        row = {"kind": true.kind, "of": str(true.of).split(SEPARATOR), "truth": true.figure or 0.0}
        estimates = {result.model.name: _ends(result.runs[0][place]) for result in results}
        (own, *others) = estimates.values()
        rows.append(row | (estimates if others else own))
    return rows


def _ends(row: Figure) -> dict[str, float | None]:
    return {"figure": row.figure, "low": row.low, "high": row.high}


def _table(results: Sequence[SimulatedModel]) -> Table:
    columns = (name for result in results for name in (result.model.name, "interval"))
    lines = [
        (
            true.kind,
            str(true.of),
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


def _error_table(errors: Sequence[dict[str, Any]], runs: int) -> Table:
    rows = [
        (
            row["model"],
            number_format.epsilon(row["epsilon"]),
            "" if row["error"] is None else f"{row['error']:.3f}",
            "" if row["coverage"] is None else f"{row['coverage']:.1%}",
        )
        for row in errors
    ]
    return Table(f"Over {runs:,} batches, all figures together", ERRORS, rows)
