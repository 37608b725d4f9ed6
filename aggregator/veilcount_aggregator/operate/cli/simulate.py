"""`veilcount simulate`: a known population, and its estimates."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from veilcount_analysis.kinds.kind import Kind
from veilcount_analysis.kinds.registry import KINDS, kind_of
from veilcount_analysis.kinds.shuffled_simulation import ShuffledSimulation, simulate_shuffled
from veilcount_analysis.query_params import Parameters
from veilcount_analysis.simulation.local_vs_central import AnswersSimulation
from veilcount_analysis.simulation.simulated_figures import SimulatedFigures
from veilcount_analysis.text import number_format
from veilcount_analysis.text.view_parts import Part
from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency

from . import options
from .output import print_result, spinner
from .query_source import struct_options

SEEDS = 1 << 32
#: the options of each kind
QUERIES = dict.fromkeys(kind.simulation for kind in KINDS.values() if kind.simulation)
QUERIES[ShuffledSimulation] = None


@click.command("simulate")
@options.definitions_file
@options.name_in_file
@struct_options(*QUERIES)
@click.option("--seed", type=click.IntRange(0, SEEDS - 1), help="Reproduce a run.")
@options.as_json
def command(file: Path, name: str, *, params: Parameters, seed: int | None, as_json: bool) -> None:
    """Compare the truth with estimates of it.

    Simulated devices answer collection NAME of FILE once, drawn from the mechanism's exact
    distribution. Of values and means, a trusted curator queries the same devices at the same
    epsilon; of open strings, candidates are tested, or a curator's release of a period is drawn and
    local reports are compared with it; of features, moments are estimated; of a trend, all of its
    periods are. Shuffled batches are drawn with covers, many times over, next to local
    noise and, of values and means, a curator at the epsilon against the server.
    """
    collection = options.load_collection(file, name)
    kind = _simulated_kind(collection)
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
    with spinner("simulating"):
        simulated = _simulate(kind, params, np.random.default_rng(seed))
    document = {
        "collection": collection.name,
        "fingerprint": collection.fingerprint,
        "n": simulated.n,
        "epsilon": float(collection.unit_epsilon),
        "level": simulated.level,
        "estimand": simulated.estimand,
        "seed": seed,
    }
    answers = "one answer each," if collection.kind.fresh else "all reports together at"
    title = (
        f"{collection.name}: n = {simulated.n:,} devices, {answers} epsilon"
        f" {number_format.epsilon(collection.unit_epsilon)}{_terms(collection)}, intervals at"
        f" {simulated.level:.4g} {simulated.estimand} (--seed {seed})"
    )
    errors = [simulated.errors] if simulated.errors else []
    parts: list[Part] = [title, simulated.table, *errors, *simulated.closing]
    print_result(document | dict(simulated.facts), parts, as_json=as_json)


def _terms(collection: Collection) -> str:
    """Return a curator's delta and the adjacency, which go with the epsilon."""
    delta = f" and delta {number_format.decimal(collection.delta)}" if collection.delta else ""
    return f"{delta} ({number_format.adjacency(collection.adjacency or Adjacency.SUBSTITUTE)})"


def _simulate(
    kind: Kind[object, object], params: Parameters, generator: np.random.Generator
) -> SimulatedFigures:
    """Simulate values and means among covers with a curator, all else as its kind does."""
    rules = kind.collection.batch
    if rules is not None and rules.covers and kind.simulation is AnswersSimulation:
        return simulate_shuffled(kind, params, generator)
    return kind.simulate(params, generator)


def _simulated_kind(collection: Collection) -> Kind[object, object]:
    """Return the kind of a collection, or refuse one that is not simulated."""
    kind = kind_of(collection)
    if collection.trust.reveals and not kind.simulates_releases:
        fix = f"{collection.name} is central: give a local one, which is compared with a curator"
        raise click.BadParameter(fix, param_hint="NAME")
    if kind.simulation is None:
        supported = ", ".join(query.subject for query in QUERIES)
        raise click.BadParameter(
            f'{collection.name} has measure = "{collection.measure}": {supported} are simulated',
            param_hint="NAME",
        )
    return kind
