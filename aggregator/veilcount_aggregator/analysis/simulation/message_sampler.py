"""What devices would send, message by message: for demonstrations and load."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection

from ...mechanisms import handler_of
from ...sampling.mixture import Ints, chunks
from ...series.packed_rows import Packed
from .population import check_inputs


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
