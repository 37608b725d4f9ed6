"""A population: how many devices hold which input."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection, RandomSource
from veilcount_shared.collection import Model
from veilcount_shared.domain import GRID, GRID_BITS, Number
from veilcount_shared.mechanisms import DistributionMechanism, MeanMechanism, RangeTree
from veilcount_shared.mechanisms.square_wave import BUCKET_BITS, BUCKETS
from veilcount_shared.randomness import WORDS

from .mixture import Floats, Ints

MOST = 10**9 - 1  # devices: numpy's hypergeometric draws go no further


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """`devices[i]` devices hold `inputs[i]`: places of a domain, for a number points of its grid.

    A trusted curator's numbers are their places from low to high.
    """

    inputs: Ints
    devices: Ints

    def __post_init__(self) -> None:
        """Refuse what is no count of devices."""
        if self.inputs.shape != self.devices.shape or self.inputs.ndim != 1:
            raise ValueError("give one number of devices for each input")
        if (self.devices < 0).any() or self.n > MOST:
            raise ValueError(f"give 0 to {MOST:,} devices in all")

    @property
    def n(self) -> int:
        """How many devices there are."""
        return int(self.devices.sum())

    def each(self) -> Ints:
        """Return the input of every single device."""
        return np.repeat(self.inputs, self.devices)


class GeneratorCoins(RandomSource):
    """Coins thrown by a numpy generator: for simulations, no device's."""

    __slots__ = ("_generator",)

    predictable: ClassVar[bool] = True

    def __init__(self, generator: Generator) -> None:
        """Take the words from this generator."""
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
    randomness = GeneratorCoins(generator)
    enter = collection.reveal if collection.model is Model.CENTRAL else collection.domain.input
    inputs, devices = np.unique(
        np.fromiter((enter(value, randomness) for value in values), np.int64), return_counts=True
    )
    return Population(inputs, devices)


def held(collection: Collection, given: Population | Ints, generator: Generator) -> Ints:
    """Return how many devices hold each of the design's inputs.

    Counts are taken as they are: one a value, bucket or start. A number whose mean is asked is
    rounded to a start, up or down by chance, as on the device.
    """
    size = collection.mechanism.inputs
    if not isinstance(given, Population):
        if given.shape != (size,):
            raise ValueError(f"{collection.name}: give {size} counts, one for each input")
        return Population(np.arange(size), given).devices
    _check(collection, given.inputs)
    mechanism = collection.mechanism
    if isinstance(mechanism, MeanMechanism):
        low, up = rounding(mechanism, given.inputs)
        higher = generator.binomial(given.devices, up)
        return _summed(low, given.devices - higher, size) + _summed(low + 1, higher, size)
    places = (
        buckets(given.inputs)
        if isinstance(mechanism, DistributionMechanism | RangeTree)
        else given.inputs
    )
    return _summed(places, given.devices, size)


def starts(collection: Collection, inputs: Ints, generator: Generator) -> Ints:
    """Return the design's input of each device."""
    _check(collection, inputs)
    if isinstance(collection.mechanism, MeanMechanism):
        low, up = rounding(collection.mechanism, inputs)
        rounded: Ints = low + (generator.random(len(inputs)) < up)
        return rounded
    return (
        buckets(inputs)
        if isinstance(collection.mechanism, DistributionMechanism | RangeTree)
        else inputs
    )


def buckets(points: Ints) -> Ints:
    """Return the bucket of each point of the grid; the upper end belongs to the last."""
    found: Ints = np.minimum(points >> GRID_BITS - BUCKET_BITS, BUCKETS - 1)
    return found


def rounding(mechanism: MeanMechanism, points: Ints) -> tuple[Ints, Floats]:
    """Return the start at or below each point, and the chance of the next one instead.

    In floats: a chance is off by some 1e-15 in units of the range.
    """
    low, high = mechanism.means[0], mechanism.means[-1]
    ends = np.array([float((mean - low) / (high - low)) for mean in mechanism.means])
    place = points / GRID
    start = np.clip(np.searchsorted(ends, place, side="right") - 1, 0, len(ends) - 2)
    up = (place - ends[start]) / (ends[start + 1] - ends[start])
    return start, np.clip(up, 0, 1)


def _summed(places: Ints, devices: Ints, size: int) -> Ints:
    counts = np.zeros(size, np.int64)
    np.add.at(counts, places, devices)
    return counts


def _check(collection: Collection, inputs: Ints) -> None:
    on_grid = isinstance(collection.domain, Number) and collection.model is Model.LOCAL
    last = GRID if on_grid else collection.inputs - 1
    if len(inputs) and not 0 <= inputs.min() <= inputs.max() <= last:
        raise ValueError(f"{collection.name}: an input is a number from 0 to {last:,}")
