"""Samples from the exact joint distribution of a tally, for a whole population at once."""

from __future__ import annotations

from numpy.random import Generator

from veilcount_shared import Collection

from ...mechanisms import handler_of
from ...sampling.mixture import Ints
from ...series.packed_rows import Counters
from .population import Population, count_inputs


def simulate(
    collection: Collection, population: Population | Ints, generator: Generator
) -> Counters:
    """Return the counters that `tally` would make of one report of each device.

    An array says how many devices hold each of the mechanism's inputs: values, the buckets of a
    distribution, the starts of a mean. Nothing is kept of single devices.
    """
    held = count_inputs(collection, population, generator)
    return handler_of(collection.mechanism).draw_counters(held, generator)
