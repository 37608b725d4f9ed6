"""Several numbers of a known population: each spread evenly, every two with one correlation.

A person's numbers are all at the same part of their ranges with a probability, else independent.
That probability is the correlation of every two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.domain import GRID

from ..estimation.moments import MomentMeans
from ..mechanisms.moments import moments_handler
from ..mechanisms.sampling import Ints, chunks
from ..query_params import parameter
from ..series.packed_rows import Counters
from .batch_models import Runs
from .simulated_figures import DrawnDevices, SimulationQuery


@dataclass(frozen=True, kw_only=True)
class FeaturesSimulation(SimulationQuery):
    """How the numbers of a person hang together, and what is regressed."""

    subject: ClassVar[str] = "features"
    refused: ClassVar[Mapping[str, str]] = {"truth": "numbers are spread evenly: give correlation"}

    n: DrawnDevices
    correlation: Annotated[
        float,
        parameter(
            "Features: the true correlation of every two, 0.5 by default.",
            ge=0,
            le=1,
            metavar="SHARE",
        ),
    ] = 0.5
    regress: Annotated[
        str | None, parameter("Features: regress this one on all others.", metavar="NAME")
    ] = None
    runs: Runs = None


def simulate_numbers(
    collection: Collection, n: int, correlation: float, generator: Generator
) -> Counters:
    """Return the counters of one report of each of n devices."""
    handler = moments_handler(collection)
    counters = np.zeros(handler.mechanism.messages, np.int64)
    for part in chunks(n):
        devices = min(part.stop, n) - part.start
        points = _points(devices, handler.mechanism.features, correlation, generator)
        messages = handler.draw_messages(handler.draw_moments(points, generator), generator)
        counters += np.bincount(messages, minlength=len(counters))
    return counters


def _points(devices: int, features: int, correlation: float, generator: Generator) -> Ints:
    """Return each device's point on the grid of each feature."""
    points = generator.integers(GRID, size=(devices, features), endpoint=True)
    same = generator.random(devices) < correlation
    points[same] = points[same, :1]
    return points


def true_moments(collection: Collection, correlation: float) -> MomentMeans:
    """Return the moments of that population, with nothing uncertain."""
    features = moments_handler(collection).mechanism.features
    moments = MomentMeans.evenly_spread(features, 1, 0.0, correlation)
    return replace(moments, variances=np.zeros_like(moments.variances))
