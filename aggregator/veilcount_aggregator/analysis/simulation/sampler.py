"""Samples of a whole population: the tally of its reports, or the messages one by one."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection

from ...mechanisms import handler_of
from ...sampling.mixture import Ints, chunks
from ...series.packed_rows import Counters, Packed
from .population import Population, check_inputs, count_inputs


def simulate(
    collection: Collection, population: Population | Ints, generator: Generator
) -> Counters:
    """Return the counters that `tally` would make of one report of each device.

    An array says how many devices hold each of the mechanism's inputs: values, the buckets of a
    distribution, the starts of a mean. Nothing is kept of single devices.
    """
    held = count_inputs(collection, population, generator)
    return handler_of(collection.mechanism).draw_counters(held, generator)


def simulate_messages(collection: Collection, inputs: Ints, generator: Generator) -> Packed:
    """Return a row of wire bytes for each device, which holds the given input.

    An input is the place of a value; of a number, its point on the grid (a trusted curator's
    number: its place from low to high).
    """
    check_inputs(collection, inputs)
    handler = handler_of(collection.mechanism)
    rows = np.empty((len(inputs), collection.message_bytes), np.uint8)
    for part in chunks(len(inputs)):
        rows[part] = handler.draw_rows(handler.draw_inputs(inputs[part], generator), generator)
    return rows
