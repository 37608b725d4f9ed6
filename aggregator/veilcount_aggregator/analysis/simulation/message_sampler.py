"""What devices would send, message by message: for demonstrations and load."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from veilcount_shared import Collection
from veilcount_shared.mechanisms import (
    Identity,
    ProjectiveGeometry,
    RangeTree,
    SquareWave,
    SubsetSelection,
)

from .mixture import Ints, tells
from .population import starts
from .projective_columns import through
from .subset_sampler import members

CHUNK = 1 << 14  # devices drawn at a time: few enough for the cache, many enough for numpy

Packed = NDArray[np.uint8]


def simulate_messages(collection: Collection, inputs: Ints, generator: Generator) -> Packed:
    """Return a row of wire bytes for each device, which holds the given input.

    An input is the place of a value; of a number, its point on the grid (a trusted curator's
    number: its place from low to high).
    """
    rows = np.empty((len(inputs), collection.message_bytes), np.uint8)
    for part in chunks(len(inputs)):
        held = starts(collection, inputs[part], generator)
        rows[part] = _rows(collection, held, generator)
    return rows


def chunks(devices: int) -> Iterator[slice]:
    """Yield slices that together cover so many devices."""
    yield from (slice(begin, begin + CHUNK) for begin in range(0, devices, CHUNK))


def messages(
    mechanism: SubsetSelection | ProjectiveGeometry | SquareWave, x: Ints, generator: Generator
) -> Ints:
    """Return the message of each device, of a design whose messages are small numbers."""
    telling = tells(mechanism, len(x), generator)
    own = x[telling]
    match mechanism:
        case SubsetSelection():
            chosen, every = own, mechanism.k
        case ProjectiveGeometry():
            which = generator.integers(mechanism.support_size, size=len(own))
            chosen, every = through(mechanism, own, which), mechanism.messages
        case SquareWave():
            chosen, every = (
                own + generator.integers(mechanism.width, size=len(own)),
                mechanism.levels,
            )
    sent = generator.integers(every, size=len(x))
    sent[telling] = chosen
    return sent


def _rows(collection: Collection, x: Ints, generator: Generator) -> Packed:
    mechanism, width = collection.mechanism, collection.message_bytes
    if isinstance(mechanism, Identity):
        return _bytes(x, width)
    if isinstance(mechanism, SubsetSelection) and mechanism.w > 1:
        return _subsets(mechanism, members(mechanism, x, generator), width)
    if isinstance(mechanism, RangeTree):
        return _bytes(_tree(mechanism, x, generator), width)
    of = (
        mechanism
        if isinstance(mechanism, SubsetSelection | ProjectiveGeometry)
        else mechanism.window
    )
    return _bytes(messages(of, x, generator), width)


def _tree(mechanism: RangeTree, buckets: Ints, generator: Generator) -> Ints:
    """Return the message of each device, which draws its level first."""
    drawn = generator.integers(len(mechanism.levels), size=len(buckets))
    sent = np.empty(len(buckets), np.int64)
    for place, level in enumerate(mechanism.levels):
        here = drawn == place
        nodes = buckets[here] // (mechanism.inputs // level.inputs)
        sent[here] = mechanism.starts[place] + messages(level, nodes, generator)
    return sent


def _bytes(numbers: Ints, width: int) -> Packed:
    """Return numbers as bytes, the highest first."""
    shifts = 8 * np.arange(width - 1, -1, -1)
    return (numbers[:, np.newaxis] >> shifts & 0xFF).astype(np.uint8)


def _subsets(mechanism: SubsetSelection, drawn: Ints, width: int) -> Packed:
    """Return subsets in their one spelling: a mask, or the members ascending from the low bits."""
    devices = drawn.shape[1]
    bits = np.zeros((devices, 8 * width), np.uint8)
    if mechanism.masked:
        np.put_along_axis(bits, drawn.T, 1, axis=1)
    else:
        labels = np.sort(drawn, axis=0).T[:, :, np.newaxis]
        digits = labels >> np.arange(mechanism.label_bits) & 1
        bits[:, : mechanism.bits] = digits.reshape(devices, mechanism.bits)
    return np.packbits(bits, axis=1, bitorder="little")[:, ::-1]
