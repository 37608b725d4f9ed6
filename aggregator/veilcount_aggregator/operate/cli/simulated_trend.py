"""What `veilcount simulate` prints of a trend: the share after each period."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click
import numpy as np
from numpy.random import Generator

from veilcount_analysis.estimation import IntervalTarget
from veilcount_analysis.simulation import SimulatedTrend, simulate_trend
from veilcount_analysis.text import number_format
from veilcount_shared import Collection
from veilcount_shared.schedule import period_end, period_start

from .simulation_table import SimulationOptions, SimulationTable

COLUMNS = ("from", "to", "truth", "local", "interval")
MOST = 10_000_000  # devices: each is drawn, in every period


def simulated_trend(
    collection: Collection, options: SimulationOptions, generator: Generator
) -> SimulationTable:
    """Estimate the share of a state that people change at random times, half of them never."""
    if options.n > MOST:
        raise click.BadParameter(f"at most {MOST:,} devices with a trend", param_hint="--n")
    found = simulate_trend(collection, options.n, generator, options.level)
    rows = [_row(collection, found, period) for period in range(len(found.truth))]
    stated = [row for row in rows if row["local"]]
    held = sum(row["local"]["low"] <= row["truth"] <= row["local"]["high"] for row in stated)
    return SimulationTable(
        facts={"periods": rows},
        columns=COLUMNS,
        rows=[_cells(row) for row in rows[: options.top]],
        closing=(
            f"the truth is in {held} of {len(stated)} intervals, of {len(rows)} periods",
            *([f"the first {options.top} are shown (--top)"] if len(rows) > options.top else []),
        ),
        target=IntervalTarget.POPULATION,
    )


def _row(collection: Collection, found: SimulatedTrend, period: int) -> dict[str, Any]:
    ends = ("value", "low", "high")
    local = {name: float(getattr(found.local, name)[period]) for name in ends}
    return {
        "from": period_start(collection, period).date().isoformat(),
        "to": (period_end(collection, period).date() - timedelta(days=1)).isoformat(),
        "truth": float(found.truth[period]),
        "local": local if np.isfinite(local["value"]) else None,
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    truth, local = number_format.share(row["truth"]), row["local"]
    if local is None:
        return row["from"], row["to"], truth, "no reports", ""
    interval = number_format.interval(local["low"], local["high"], of_shares=True)
    return row["from"], row["to"], truth, number_format.share(local["value"]), interval
