"""`veilcount simulate`: a known population, estimated locally and by a trusted curator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from veilcount_shared import Collection, SystemRandomSource
from veilcount_shared.collection import Measure, Model
from veilcount_shared.domain import Features, Number, OpenStrings
from veilcount_shared.errors import format_value

from ..analysis.simulation import (
    Population,
    SimulatedEstimate,
    Simulation,
    compare_local_and_central,
)
from ..queries.domain_values import no_value, places_of, value_at
from ..text import number_format
from ..text.result_columns import spelled
from . import options
from .output import print_json, print_lines, print_table, spinner

COLUMNS = ("value", "truth", "local", "interval", "central", "interval")
MEAN = "mean"
SEEDS = 1 << 32
POINTS = 64  # evenly spread over a number's range, for a named distribution
EXPONENT = 1.3
DISTRIBUTIONS = "zipf, zipf:EXPONENT or uniform"

Weights = NDArray[np.float64]
Devices = NDArray[np.int64]


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
    collection = options.load_collection(file, name)
    _check(collection)
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
    people, generator = simulate_population(collection, n, truth), np.random.default_rng(seed)
    with spinner(f"simulating {n:,} devices"):
        found = compare_local_and_central(collection, people, generator, float(level))
    rows = list(_rows(collection, found, top))
    if as_json:
        document = {
            "collection": collection.name,
            "fingerprint": collection.fingerprint,
            "n": found.n,
            "epsilon": found.epsilon,
            "level": found.level,
            "estimand": "of these n answers",
            "seed": seed,
            "values": rows,
        }
        print_json(document)
    else:
        _print(collection, found, seed, rows)


def _check(collection: Collection) -> None:
    if collection.model is Model.CENTRAL:
        raise click.BadParameter(
            f"{collection.name} is central: give a local one, which is compared with a curator",
            param_hint="NAME",
        )
    if isinstance(collection.domain, OpenStrings | Features):
        kind = "features" if isinstance(collection.domain, Features) else "open strings"
        raise click.BadParameter(
            f'{collection.name} has {kind}: values and measure = "mean" are supported',
            param_hint="NAME",
        )
    if collection.measure in {Measure.DISTRIBUTION, Measure.RANGES, Measure.TREND}:
        raise click.BadParameter(
            f'{collection.name} measures {collection.measure}: values and measure = "mean" are'
            " supported",
            param_hint="NAME",
        )


def _rows(collection: Collection, found: Simulation, top: int) -> Iterator[dict[str, Any]]:
    """Yield the rows, the most common value first."""
    number = isinstance(collection.domain, Number)
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


# -- the simulated population ----------------------------------------------------------------------


def simulate_population(collection: Collection, n: int, truth: Sequence[str]) -> Population:
    """Return n devices that hold values from a distribution, or from VALUE=WEIGHT each."""
    if len(truth) == 1 and "=" not in truth[0]:
        inputs = _all_inputs(collection)
        weights = _distribution(truth[0])(np.arange(1, len(inputs) + 1, dtype=np.float64))
    else:
        typed = dict(_pairs(collection, truth))
        inputs, weights = np.array(list(typed), np.int64), np.array(list(typed.values()))
    return Population(inputs, apportion(n, weights))


def apportion(n: int, weights: Weights) -> Devices:
    """Return whole numbers of devices that add up to n: the largest remainders are rounded up."""
    exact = weights / weights.sum() * n
    devices: Devices = np.floor(exact).astype(np.int64)
    largest = np.argsort(devices - exact, kind="stable")
    devices[largest[: n - int(devices.sum())]] += 1
    return devices


def _all_inputs(collection: Collection) -> Devices:
    """Return all inputs; of a number, evenly spread points."""
    domain = collection.domain
    if not isinstance(domain, Number):
        return np.arange(domain.size)
    step = (domain.high - domain.low) / (POINTS - 1)
    randomness = SystemRandomSource()  # unused for values of the grid
    return np.array(
        [domain.input(domain.low + step * place, randomness) for place in range(POINTS)]
    )


def _distribution(word: str) -> Callable[[Weights], Weights]:
    name, _, exponent = word.partition(":")
    if word == "uniform":
        return np.ones_like
    if name == "zipf":
        power = float(options.number(exponent)) if exponent else EXPONENT
        return lambda ranks: ranks**-power
    raise click.BadParameter(
        f"{format_value(word)}: give {DISTRIBUTIONS}, or VALUE=WEIGHT", param_hint="--truth"
    )


def _pairs(collection: Collection, words: Sequence[str]) -> Iterator[tuple[int, float]]:
    for word in words:
        value, _, weight = word.rpartition("=")
        share = options.number(weight) if value else Fraction(0)
        if share <= 0:
            raise click.BadParameter(
                f"{format_value(word)}: give VALUE=WEIGHT, a weight above 0", param_hint="--truth"
            )
        yield _input(collection, value), float(share)


def _input(collection: Collection, value: str) -> int:
    """Return the input of a value as it was typed, which must be of the domain."""
    domain = collection.domain
    if isinstance(domain, Number):
        number = options.number(value)
        if not domain.low <= number <= domain.high:
            ends = f"{float(domain.low):g} to {float(domain.high):g}"
            raise click.BadParameter(f"{value}: give a number from {ends}", param_hint="--truth")
        return domain.input(number, SystemRandomSource())
    found = places_of(collection, [value])
    if found.unknown:
        raise no_value(collection, value, "truth")
    return int(found.places[0])
