"""A population, that is, how many devices hold which input, and samples of it: the tally of its
reports, or the messages one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection, RandomSource
from veilcount_shared.domain import GRID, Number
from veilcount_shared.randomness import WORDS

from ..mechanisms import handler_of
from ..mechanisms.sampling import Ints, chunks
from ..series.packed_rows import Counters, Packed

MAX_DEVICES = 10**9 - 1  # devices: numpy's hypergeometric draws go no further


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """`devices[i]` devices hold `inputs[i]`: places of a domain, for a number points of its grid.

    A trusted curator's numbers are their places from low to high.
    """

    inputs: Ints
    devices: Ints

    def __post_init__(self) -> None:
        if self.inputs.shape != self.devices.shape or self.inputs.ndim != 1:
            raise ValueError("give one number of devices for each input")
        if (self.devices < 0).any() or self.n > MAX_DEVICES:
            raise ValueError(f"give 0 to {MAX_DEVICES:,} devices in all")

    @property
    def n(self) -> int:
        """How many devices there are."""
        return int(self.devices.sum())

    def each(self) -> Ints:
        """Return the input of every single device."""
        return np.repeat(self.inputs, self.devices)


class GeneratorRandomSource(RandomSource):
    """Randomness from a numpy generator, for simulations."""

    __slots__ = ("_generator",)

    predictable: ClassVar[bool] = True

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    def word(self) -> int:
        """Return the generator's next 64 bits."""
        return int(self._generator.integers(WORDS, dtype=np.uint64))


def population(
    collection: Collection, values: Iterable[object], generator: Generator
) -> Population:
    """Return the devices that hold these values, each turned into its input as a device does it.

    So an unknown value is `other`, or drawn from the generator.
    """
    randomness = GeneratorRandomSource(generator)
    enter = collection.reveal if collection.trust.reveals else collection.domain.input
    inputs, devices = np.unique(
        np.fromiter((enter(value, randomness) for value in values), np.int64), return_counts=True
    )
    return Population(inputs, devices)


def count_inputs(collection: Collection, held: Population | Ints, generator: Generator) -> Ints:
    """Return how many devices hold each of the mechanism's inputs.

    Counts are taken as they are: one per value, bucket or start. A number whose mean is asked is
    rounded to a start, up or down by chance, as on the device.
    """
    size = collection.mechanism.inputs
    if not isinstance(held, Population):
        if held.shape != (size,):
            raise ValueError(f"{collection.name}: give {size} counts, one for each input")
        return Population(np.arange(size), held).devices
    check_inputs(collection, held.inputs)
    handler = handler_of(collection.mechanism)
    return handler.count_inputs(held.inputs, held.devices, generator)


def check_inputs(collection: Collection, inputs: Ints) -> None:
    """Refuse places outside the domain, or points outside a number's grid."""
    on_grid = isinstance(collection.domain, Number) and not collection.trust.reveals
    last = GRID if on_grid else collection.inputs - 1
    if len(inputs) and not 0 <= inputs.min() <= inputs.max() <= last:
        raise ValueError(f"{collection.name}: an input is a number from 0 to {last:,}")


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
