"""Answers of a known population to several questions: each evenly spread, all with one association.

A person's answers are all at the same part of their lists with a probability, else independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection

from ..estimation.confidence_intervals import Floats
from ..estimation.two_way_tables import TableShape, TwoWayTable
from ..mechanisms.pair_tables import tables_handler
from ..mechanisms.sampling import Ints, chunks
from ..query_params import parameter
from ..series.packed_rows import Counters
from .batch_models import Runs
from .simulated_figures import DrawnDevices, SimulationQuery


@dataclass(frozen=True, kw_only=True)
class TablesSimulation(SimulationQuery):
    """How the answers of a person go together, and which pair is shown."""

    subject: ClassVar[str] = "tables"
    refused: ClassVar[Mapping[str, str]] = {
        "truth": "answers are spread evenly: give association",
        "correlation": "answers have none: give association",
    }

    n: DrawnDevices
    association: Annotated[
        float,
        parameter(
            "Tables: how likely a person's answers go together, 0.5 by default.",
            ge=0,
            le=1,
            metavar="SHARE",
        ),
    ] = 0.5
    pair: Annotated[
        str | None, parameter("Tables: only these two questions.", metavar="ONE,TWO")
    ] = None
    runs: Runs = None


def simulate_answers(
    collection: Collection, n: int, association: float, generator: Generator
) -> Counters:
    """Return the counters of one report of each of n devices."""
    handler = tables_handler(collection)
    held = np.zeros(handler.mechanism.counters, np.int64)
    for part in chunks(n):
        devices = min(part.stop, n) - part.start
        points = _points(devices, handler.mechanism.sizes, association, generator)
        held += np.bincount(handler.draw_inputs(points, generator), minlength=len(held))
    return handler.draw_counters(held, generator)


def _points(devices: int, sizes: tuple[int, ...], association: float, generator: Generator) -> Ints:
    """Return each device's answers to all questions, as one number."""
    places = generator.random((len(sizes), devices))
    same = generator.random(devices) < association
    places[:, same] = places[0, same]
    answers = (places * np.array(sizes)[:, np.newaxis]).astype(np.int64)
    points: Ints = np.ravel_multi_index(tuple(answers), sizes)
    return points


def true_tables(collection: Collection, association: float) -> list[TwoWayTable]:
    """Return the tables of that population, as if all reports were certain."""
    return list(_true_tables(collection, association))


def _true_tables(collection: Collection, association: float) -> Iterator[TwoWayTable]:
    mechanism = tables_handler(collection).mechanism
    for (one, two), subset in zip(mechanism.pairs, mechanism.subsets, strict=True):
        shape = TableShape(mechanism.sizes[one], mechanism.sizes[two])
        cells = true_cells(shape, association).ravel()
        supports = float(subset.Q) + float(subset.P - subset.Q) * cells
        n = 1 << 40  # so many that nothing is uncertain
        counts = np.rint(n * supports).astype(np.int64)
        yield TwoWayTable(subset, shape, n, counts, 1.0, len(mechanism.pairs))


def true_cells(shape: TableShape, association: float) -> Floats:
    """Return the cells: at the same part of both lists, or independent."""
    ends = [np.arange(size + 1) / size for size in (shape.rows, shape.columns)]
    low = np.maximum(ends[0][:-1, np.newaxis], ends[1][:-1])
    high = np.minimum(ends[0][1:, np.newaxis], ends[1][1:])
    together: Floats = np.maximum(high - low, 0.0)
    return association * together + (1 - association) / shape.size
