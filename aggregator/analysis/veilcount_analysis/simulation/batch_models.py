"""What a simulated collection is compared in: its own model, and local noise.

Both are at the same epsilon: of a shuffled batch the one against the server, of a curator's strings
the budget. Of a local collection, and of a batch without covers, its own reports are all there is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.collection import Model

from ..errors import QueryError
from ..mechanisms import tally
from ..query_params import parameter
from ..series.packed_rows import Counters
from ..text import number_format
from .population import GeneratorRandomSource

MOST_COVERS = 10_000_000  # drawn one by one
SHUFFLED, LOCAL, CENTRAL = "shuffled", "local", "central"

Runs = Annotated[
    int | None,
    parameter(
        "Shuffled: number of batches, 100 by default, of open strings 5; the first is shown.",
        ge=1,
        le=10_000,
        metavar="N",
    ),
]


@dataclass(frozen=True, slots=True)
class BatchModel:
    """A collection under one model, and how many covers its reports are among."""

    name: str
    collection: Collection
    covers: int = 0

    @property
    def epsilon(self) -> float:
        """The epsilon of one report."""
        return float(self.collection.unit_epsilon)

    def among_covers(self, counters: Counters, generator: Generator) -> Counters:
        """Add covers to the counters of reports, drawn by the code that a shuffler runs."""
        randomness = GeneratorRandomSource(generator)
        cover = self.collection.randomizer.cover
        messages = [cover(randomness) for _ in range(self.covers)]
        return counters + tally(self.collection, messages) if messages else counters


def batch_models(collection: Collection) -> tuple[BatchModel, ...]:
    """Return the models of a collection, its own first."""
    if collection.trust.reveals:
        return BatchModel(CENTRAL, collection), BatchModel(LOCAL, _local(collection))
    rules = collection.batch
    if rules is None or not rules.covers:
        return (BatchModel(LOCAL, collection),)
    local = replace(collection, model=Model.LOCAL, epsilon=rules.epsilon, batch=None)
    return BatchModel(SHUFFLED, collection, rules.covers), BatchModel(LOCAL, local)


def _local(collection: Collection) -> Collection:
    """Return a curator's question with as much epsilon for each device to randomize by."""
    return replace(
        collection,
        model=Model.LOCAL,
        epsilon=collection.unit_epsilon,
        budget=None,
        adjacency=None,
        delta=None,
        noise=None,
        batch=None,
        twin=None,
    )


def covers_line(collection: Collection) -> tuple[str, ...]:
    """Return the closing line on the models that are compared; none without covers."""
    rules = collection.batch
    if rules is None or not rules.covers:
        return ()
    epsilon = number_format.epsilon(rules.epsilon or 0)
    line = (
        f"shuffled: each report at its own epsilon, among {rules.covers:,} covers; local: at"
        f" epsilon {epsilon}, the batch's against the server"
    )
    return (line,)


def run_count(models: tuple[BatchModel, ...], runs: int | None, default: int) -> int:
    """Return how many batches are drawn, or refuse too many; of reports without covers one."""
    covers = models[0].covers
    if not covers:
        if runs is not None:
            raise QueryError("runs", runs, "batches with covers are drawn again: remove it")
        return 1
    number = default if runs is None else runs
    if number * covers > MOST_COVERS:
        fix = f"give {MOST_COVERS // covers:,} at most: each has {covers:,} covers"
        raise QueryError("runs", number, fix)
    return number
