"""What `veilcount simulate` prints of several numbers: spread, correlations, a regression."""

from __future__ import annotations

from typing import Any

import click
from numpy.random import Generator

from veilcount_analysis.estimation import IntervalTarget
from veilcount_analysis.kinds.features import (
    SEPARATOR,
    MomentTerms,
    features_of,
    moment_figures,
)
from veilcount_analysis.mechanisms.moments import moments_handler
from veilcount_analysis.simulation import simulate_numbers, true_moments
from veilcount_analysis.text.number_format import precise
from veilcount_shared import Collection

from .simulation_table import SimulationOptions, SimulationTable

COLUMNS = ("figure", "of", "truth", "local", "interval")
MOST = 10_000_000  # devices: each is drawn


def simulated_numbers(
    collection: Collection, options: SimulationOptions, generator: Generator
) -> SimulationTable:
    """Estimate the moments of evenly spread numbers of which every two have one correlation."""
    domain, regress = features_of(collection), options.regress
    if options.n > MOST:
        raise click.BadParameter(f"at most {MOST:,} devices with features", param_hint="--n")
    if regress is not None and regress not in domain.names:
        fix = f"give one of {', '.join(domain.names)}"
        raise click.BadParameter(f"{regress}: {fix}", param_hint="--regress")
    counters = simulate_numbers(collection, options.n, options.correlation, generator)
    found = moments_handler(collection).means(counters)
    if not found.complete:
        raise click.BadParameter("too few for a report of each moment", param_hint="--n")
    terms = MomentTerms(options.level, regress=regress)
    truth = true_moments(collection, options.correlation)
    both = (moment_figures(domain, moments, terms) for moments in (truth, found))
    rows = [
        {
            "kind": row.kind,
            "of": str(row.of).split(SEPARATOR),
            "truth": true.figure,
            "figure": row.figure,
            "low": row.low,
            "high": row.high,
        }
        for true, row in zip(*both, strict=True)
    ]
    stated = [row for row in rows if row["figure"] is not None]
    held = sum(row["low"] <= row["truth"] <= row["high"] for row in stated)
    return SimulationTable(
        facts={"correlation": options.correlation, "moments": rows},
        columns=COLUMNS,
        rows=[_cells(row) for row in rows],
        closing=(f"the truth is in {held} of {len(stated)} intervals stated",),
        target=IntervalTarget.POPULATION,
    )


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    name, truth = SEPARATOR.join(row["of"]), f"{row['truth']:,.6g}"
    if row["figure"] is None:
        return row["kind"], name, truth, "not stated", ""
    figure, low, high = (
        precise(row[end], row["low"], row["high"]) for end in ("figure", "low", "high")
    )
    return row["kind"], name, truth, figure, f"{low} to {high}"
