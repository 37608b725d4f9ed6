"""`veilcount simulate`: a population whose truth is known, asked locally and by a curator."""

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

from ..analysis.simulation import SimulatedEstimate, Simulation, beside
from ..queries.domain_values import size_of, value_at
from ..text import number_format
from ..text.result_columns import spelled
from . import options, param_types
from .output import tell_json, tell_lines, tell_table
from .population_option import LAWS, crowd
from .progress import waiting

COLUMNS = ("value", "truth", "local", "interval", "central", "interval")
MEAN = "mean"
SEEDS = 1 << 32


@click.command("simulate")
@param_types.file
@param_types.name
@click.option("--n", "n", type=param_types.COUNT, required=True, help="How many devices answer.")
@click.option(
    "--truth",
    multiple=True,
    default=("zipf",),
    show_default=True,
    help=f"{LAWS}; or VALUE=WEIGHT, given again for each value.",
)
@click.option(
    "--top",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="How many of the most common values to show.",
)
@click.option("--seed", type=click.IntRange(0, SEEDS - 1), help="The same figures again.")
@param_types.level
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
    """Set the truth beside what both models would say of it.

    Devices of a made-up population answer collection NAME of FILE once, by the exact law of its
    design; a trusted curator asks the same devices at the same epsilon.
    """
    collection = param_types.load(file, name)
    _check(collection)
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
    people, generator = crowd(collection, n, truth), np.random.default_rng(seed)
    with waiting(f"{n:,} devices answer"):
        found = beside(collection, people, generator, float(level))
    rows = list(_rows(collection, found, top))
    if as_json:
        tell_json(_facts(collection, found, seed) | {"values": rows})
    else:
        _tell(collection, found, seed, rows)


def _check(collection: Collection) -> None:
    if collection.model is Model.CENTRAL:
        raise click.BadParameter(
            f"{collection.name} is central: name a local one, the curator is shown beside it",
            param_hint="NAME",
        )
    if collection.measure in {Measure.DISTRIBUTION, Measure.RANGES}:
        raise click.BadParameter(
            f'{collection.name} measures {collection.measure}: values and measure = "mean" can be'
            " compared",
            param_hint="NAME",
        )


def _facts(collection: Collection, found: Simulation, seed: int) -> dict[str, Any]:
    return {
        "collection": collection.name,
        "fingerprint": collection.fingerprint,
        "n": found.n,
        "epsilon": found.epsilon,
        "level": found.level,
        "of": "of these n answers",
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
            "local": _said(found.local, place),
            "central": _said(found.central, place),
        }


def _said(figures: SimulatedEstimate, place: int) -> dict[str, float]:
    value, low, high = (float(each[place]) for each in (figures.value, figures.low, figures.high))
    return {"value": value, "low": low, "high": high}


def _tell(collection: Collection, found: Simulation, seed: int, rows: list[dict[str, Any]]) -> None:
    shares = not isinstance(collection.domain, Number)
    epsilon = number_format.epsilon(found.epsilon)
    title = (
        f"{collection.name}: n = {found.n:,} devices, one answer each,"
        f" epsilon {epsilon} (substitution), intervals at {found.level:.4g} of these n answers"
        f" (--seed {seed})"
    )
    tell_lines([title, ""])
    tell_table(COLUMNS, [_cells(row, shares=shares) for row in rows])
    held = sum(row["local"]["low"] <= row["truth"] <= row["local"]["high"] for row in rows)
    tell_lines(["", f"the truth is in {held} of {len(rows)} local intervals shown"])


def _cells(row: dict[str, Any], *, shares: bool) -> Iterator[str]:
    yield spelled(row["value"]) or ""
    yield number_format.figure(row["truth"], of_shares=shares)
    for model in ("local", "central"):
        said = row[model]
        yield number_format.figure(said["value"], of_shares=shares)
        yield number_format.interval(said["low"], said["high"], of_shares=shares)
