"""The truth of a population with the local and the central estimate of it at the same epsilon.

Both hide one device's answer: the central side is a paired collection under "substitute", in which
each device answers once, so that the number of answers is public as it is on the local side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency, Linkage, Measure, Model, Presence, Takes
from veilcount_shared.domain import GRID, GRID_BITS, Number
from veilcount_shared.periods import Unit

from ..estimation import MeanEstimate, ShareEstimates
from ..mechanisms import estimate
from ..mechanisms.sampling import Floats, Ints, summed
from ..releases import NoiseKind, draw_release, price_query
from ..releases.noise import simulated_source
from ..series.packed_rows import Counters
from .population import Population, simulate
from .simulated_figures import (
    SimulatedEstimate,
    SimulatedFigures,
    SimulationQuery,
    Top,
    covered,
    truth_table,
)
from .true_values import ZIPF, Truth


@dataclass(frozen=True, kw_only=True)
class AnswersSimulation(SimulationQuery):
    """How many devices have which value, and how many values are shown."""

    subject: ClassVar[str] = "listed values and means"

    truth: Truth = ZIPF
    top: Top = 20


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """The true figures of a population, and each model's estimates."""

    n: int
    epsilon: float
    level: float
    truth: Floats
    local: SimulatedEstimate
    central: SimulatedEstimate

    def figures(
        self, size: int, top: int, value: Callable[[int], object], *, of_shares: bool
    ) -> SimulatedFigures:
        """Return the most common of so many values, by their places."""
        order = np.argsort(-self.truth[:size], kind="stable")[:top]
        rows = [
            {
                "value": value(place),
                "truth": float(self.truth[place]),
                "local": self.local.at(place),
                "central": self.central.at(place),
            }
            for place in order.tolist()
        ]
        true, stated = covered(rows)
        return SimulatedFigures(
            n=self.n,
            level=self.level,
            facts={"values": rows},
            table=truth_table(rows, ("value",), of_shares=of_shares),
            closing=(f"the truth is in {true} of {stated} local intervals shown",),
        )


def compare_local_and_central(
    collection: Collection, population: Population, generator: Generator, level: float = 0.95
) -> Simulation:
    """Estimate one population by its local definition and by a trusted curator.

    Shares of values, or the mean of a number. All randomness is the generator's: no release.
    """
    if collection.measure in {Measure.DISTRIBUTION, Measure.RANGES} or not population.n:
        raise ValueError(f"{collection.name}: give devices, and values or a mean to compare")
    counters = simulate(collection, population, generator)
    return Simulation(
        population.n,
        float(collection.unit_epsilon),
        level,
        true_figures(collection, population),
        _local(collection, counters, level),
        central_estimate(collection, population, generator, level),
    )


def true_figures(collection: Collection, population: Population) -> Floats:
    """Return the true mean, or the true share of each input."""
    if isinstance(collection.domain, Number):
        low, high = float(collection.domain.low), float(collection.domain.high)
        share = float(population.devices @ (population.inputs / GRID)) / population.n
        return np.array([low + share * (high - low)])
    return summed(population.inputs, population.devices, collection.inputs) / population.n


def _local(collection: Collection, counters: Counters, level: float) -> SimulatedEstimate:
    """Return the estimate for exactly these devices."""
    figures = estimate(collection, counters, level, target="cohort")
    if isinstance(figures, ShareEstimates):
        return SimulatedEstimate(figures.frequency, figures.low, figures.high)
    if isinstance(figures, MeanEstimate):
        mean, low, high = np.array([[figures.mean], [figures.low], [figures.high]])
        return SimulatedEstimate(mean, low, high)
    raise TypeError(f"{collection.name}: a distribution has no shares of values and no mean")


def central_estimate(
    collection: Collection, population: Population, generator: Generator, level: float
) -> SimulatedEstimate:
    """Return the curator's mean, or shares of all devices, absent ones included."""
    paired = _paired(collection)
    number = isinstance(paired.domain, Number)
    places = _integers(population.inputs, paired.inputs) if number else population.inputs
    counters = summed(places, population.devices, collection.inputs)[: paired.inputs]
    request = {"query": "mean" if number else "histogram", "epsilon": paired.unit_epsilon}
    noise = simulated_source(NoiseKind.LAPLACE, generator)
    release = draw_release(price_query(request, paired), counters, level, noise=noise)
    whole = 1 if number else population.n
    return SimulatedEstimate(
        *(np.array(numbers) / whole for numbers in (release.values, release.low, release.high))
    )


def _paired(collection: Collection) -> Collection:
    """Return the same question for a trusted curator: one answer a device, in one period."""
    return replace(
        collection,
        model=Model.CENTRAL,
        measure=None,
        epsilon=None,
        budget=collection.unit_epsilon,
        adjacency=Adjacency.SUBSTITUTE,
        unit=Unit.USER,
        linkage=Linkage.COLLECTION,
        tokens=None,
        takes=Takes.FIRST,
        per_day=1,
        answers=None,
        presence=Presence.PUBLIC,
        batch=None,
        twin=None,
    )


def _integers(points: Ints, size: int) -> Ints:
    """Return the whole numbers of the range next to points of the grid, from low as 0."""
    return points * (size - 1) + (GRID >> 1) >> GRID_BITS
