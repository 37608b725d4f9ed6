"""`veilcount simulate`: a known population, estimated locally and by a trusted curator."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np

from veilcount_shared import Collection
from veilcount_shared.collection import Measure, Model
from veilcount_shared.domain import Number

from ..analysis.simulation import SimulatedEstimate, Simulation, compare_local_and_central
from ..queries.domain_values import size_of, value_at
from ..text import number_format
from ..text.result_columns import spelled
from . import options, param_types
from .output import print_json, print_lines, print_table, spinner
from .population_option import DISTRIBUTIONS, simulate_population

COLUMNS = ("value", "truth", "local", "interval", "central", "interval")
MEAN = "mean"
SEEDS = 1 << 32


@click.command("simulate")
@options.definitions_file
@options.name_in_file
@click.option("--n", "n", type=param_types.COUNT, required=True, help="Number of devices.")
@click.option(
    "--truth",
    multiple=True,
    default=("zipf",),
    show_default=True,
    help=f"{DISTRIBUTIONS}; or VALUE=WEIGHT, repeated for each value.",
)
@click.option(
    "--top",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Number of most common values to show.",
)
@click.option("--seed", type=click.IntRange(0, SEEDS - 1), help="Reproduce a run.")
@options.level
@options.as_json
def command(
    file: Path,
    name: str,
    *,
    n: int,
    truth: tuple[str, ...],
    top: int,
    seed: int | None,
    level: Fraction,
    as_json: bool,
) -> None:
    """Compare the truth with local and central estimates of it.

    Simulated devices answer collection NAME of FILE once, drawn from the mechanism's exact
    distribution; a trusted curator queries the same devices at the same epsilon.
    """
    collection = param_types.load_collection(file, name)
    _check(collection)
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
    people, generator = simulate_population(collection, n, truth), np.random.default_rng(seed)
    with spinner(f"simulating {n:,} devices"):
        found = compare_local_and_central(collection, people, generator, float(level))
    rows = list(_rows(collection, found, top))
    if as_json:
        print_json(_facts(collection, found, seed) | {"values": rows})
    else:
        _print(collection, found, seed, rows)


def _check(collection: Collection) -> None:
    if collection.model is Model.CENTRAL:
        raise click.BadParameter(
            f"{collection.name} is central: give a local one, which is compared with a curator",
            param_hint="NAME",
        )
    if collection.measure in {Measure.DISTRIBUTION, Measure.RANGES}:
        raise click.BadParameter(
            f'{collection.name} measures {collection.measure}: values and measure = "mean" are'
            " supported",
            param_hint="NAME",
        )


def _facts(collection: Collection, found: Simulation, seed: int) -> dict[str, Any]:
    return {
        "collection": collection.name,
        "fingerprint": collection.fingerprint,
        "n": found.n,
        "epsilon": found.epsilon,
        "level": found.level,
        "estimand": "of these n answers",
        "seed": seed,
    }


def _rows(collection: Collection, found: Simulation, top: int) -> Iterator[dict[str, Any]]:
    """Yield the rows, the most common value first."""
    number = isinstance(collection.domain, Number)
    size = 1 if number else size_of(collection)
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


def _print(
    collection: Collection, found: Simulation, seed: int, rows: list[dict[str, Any]]
) -> None:
    shares = not isinstance(collection.domain, Number)
    epsilon = number_format.epsilon(found.epsilon)
    title = (
        f"{collection.name}: n = {found.n:,} devices, one answer each,"
        f" epsilon {epsilon} (substitution), intervals at {found.level:.4g} of these n answers"
        f" (--seed {seed})"
    )
    print_lines([title, ""])
    print_table(COLUMNS, [_cells(row, shares=shares) for row in rows])
    held = sum(row["local"]["low"] <= row["truth"] <= row["local"]["high"] for row in rows)
    print_lines(["", f"the truth is in {held} of {len(rows)} local intervals shown"])


def _cells(row: dict[str, Any], *, shares: bool) -> Iterator[str]:
    yield spelled(row["value"]) or ""
    yield number_format.figure(row["truth"], of_shares=shares)
    for model in ("local", "central"):
        estimate = row[model]
        yield number_format.figure(estimate["value"], of_shares=shares)
        yield number_format.interval(estimate["low"], estimate["high"], of_shares=shares)
