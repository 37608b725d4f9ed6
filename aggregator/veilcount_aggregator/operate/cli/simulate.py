"""`veilcount simulate`: a known population, and its estimates."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from veilcount_analysis.mechanisms.candidate_search import MAX_CANDIDATES
from veilcount_analysis.text import number_format
from veilcount_shared import Collection
from veilcount_shared.collection import Measure, Model
from veilcount_shared.domain import Features, OpenStrings

from . import options
from .output import print_json, print_lines, print_table, spinner
from .population_option import DISTRIBUTIONS
from .simulated_numbers import simulated_numbers
from .simulated_strings import discovers, simulated_strings
from .simulated_trend import simulated_trend
from .simulated_values import simulated_values
from .simulation_table import SimulationOptions, SimulationTable

SEEDS = 1 << 32
OPEN, NUMBERS, TREND = "open strings", "features", "a trend"
#: options that only one kind of values has
OWN = {"strings": OPEN, "candidates": OPEN, "correlation": NUMBERS, "regress": NUMBERS}
RUNS = {OPEN: simulated_strings, NUMBERS: simulated_numbers, TREND: simulated_trend}
#: why no truth is to be given
FIXED = {
    NUMBERS: "numbers are spread evenly: give --correlation",
    TREND: "states change at random times, half of them never: remove it",
}


@click.command("simulate")
@options.definitions_file
@options.name_in_file
@click.option("--n", "n", type=options.COUNT, required=True, help="Number of devices.")
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
@click.option(
    "--strings",
    type=click.IntRange(1, MAX_CANDIDATES),
    default=1_000,
    show_default=True,
    help="Open strings: number of strings that devices have.",
)
@click.option(
    "--candidates",
    type=click.IntRange(1, MAX_CANDIDATES),
    default=10_000,
    show_default=True,
    help="Open strings: number of candidates; those that devices have are among them.",
)
@click.option(
    "--correlation",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="Features: the true correlation of every two.",
)
@click.option("--regress", metavar="NAME", help="Features: regress this one on all others.")
@click.option("--seed", type=click.IntRange(0, SEEDS - 1), help="Reproduce a run.")
@options.level
@options.as_json
def command(
    file: Path, name: str, *, seed: int | None, level: Fraction, as_json: bool, **population: Any
) -> None:
    """Compare the truth with estimates of it.

    Simulated devices answer collection NAME of FILE once, drawn from the mechanism's exact
    distribution. Of values and means, a trusted curator queries the same devices at the same
    epsilon; of open strings, candidates are tested; of features, moments are estimated; of a trend,
    all of its periods are.
    """
    collection = options.load_collection(file, name)
    kind = _checked_kind(collection)
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
    run, generator = RUNS.get(kind, simulated_values), np.random.default_rng(seed)
    wanted = SimulationOptions(level=float(level), **population)
    with spinner(f"simulating {wanted.n:,} devices"):
        found = run(collection, wanted, generator)
    if as_json:
        document = {
            "collection": collection.name,
            "fingerprint": collection.fingerprint,
            "n": wanted.n,
            "epsilon": float(collection.unit_epsilon),
            "level": wanted.level,
            "estimand": found.estimand,
            "seed": seed,
        }
        print_json(document | found.facts)
    else:
        _print(collection, wanted, found, seed)


def _checked_kind(collection: Collection) -> str:
    """Return the kind of values, or refuse a collection or an option that it does not have."""
    if collection.model is Model.CENTRAL:
        raise click.BadParameter(
            f"{collection.name} is central: give a local one, which is compared with a curator",
            param_hint="NAME",
        )
    if collection.measure in {Measure.DISTRIBUTION, Measure.RANGES}:
        raise click.BadParameter(
            f'{collection.name} measures {collection.measure}: values, measure = "mean", a'
            " trend, open strings and features are supported",
            param_hint="NAME",
        )
    kinds = {OpenStrings: OPEN, Features: NUMBERS}
    kind = TREND if collection.is_trend else kinds.get(type(collection.domain), "values")
    origin = click.get_current_context().get_parameter_source
    if discovers(collection) and origin("candidates") is ParameterSource.COMMANDLINE:
        fix = "with discover = true strings are found without: remove it"
        raise click.BadParameter(fix, param_hint="--candidates")
    for name, own in OWN.items():
        if own != kind and origin(name) is ParameterSource.COMMANDLINE:
            raise click.BadParameter(f"only for {own}: remove it", param_hint=f"--{name}")
    if kind in FIXED and origin("truth") is ParameterSource.COMMANDLINE:
        raise click.BadParameter(FIXED[kind], param_hint="--truth")
    return kind


def _print(
    collection: Collection, wanted: SimulationOptions, found: SimulationTable, seed: int
) -> None:
    epsilon = number_format.epsilon(collection.unit_epsilon)
    answers = "all reports together at" if collection.is_trend else "one answer each,"
    title = (
        f"{collection.name}: n = {wanted.n:,} devices, {answers}"
        f" epsilon {epsilon} (substitution), intervals at {wanted.level:.4g} {found.estimand}"
        f" (--seed {seed})"
    )
    print_lines([title, ""])
    print_table(found.columns, found.rows)
    print_lines(["", *found.closing])
