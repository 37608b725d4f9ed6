"""A two-level mechanism as a mixture, and balls thrown into cells: the base of every simulation.

A device sends a uniform message of its input's set with probability P, else a uniform one outside.
Equivalently: with probability `informative` a uniform message of its set, else a uniform message of
all M, whatever the input. For a set of r messages

    informative = (P M - r) / (M - r),

which lies between 0 and 1, since P is never below r / M. So the devices with uninformative messages
are one population without inputs, and only the rest is simulated input by input.

Exactness ends here: each probability is an exact rational, rounded once to the nearest float
(binomials) or down to a multiple of 2^-64 (single devices).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from veilcount_shared.randomness import WORDS

CHUNK = 1 << 14  # devices drawn at a time: few enough for the cache, many enough for numpy

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Mixture:
    """A two-level mechanism: with probability P one of `owned` messages, else one of the others."""

    P: Fraction
    owned: int
    messages: int

    @property
    def informative(self) -> Fraction:
        """The probability that a message is drawn from the input's own set on purpose."""
        return (self.P * self.messages - self.owned) / (self.messages - self.owned)

    def informative_counts(self, held: Ints, generator: Generator) -> Ints:
        """Return how many of the devices of each input send an informative message."""
        return generator.binomial(held, float(self.informative))

    def informative_flags(self, devices: int, generator: Generator) -> Flags:
        """Return for each of so many devices whether it sends an informative message."""
        words = generator.integers(WORDS, size=devices, dtype=np.uint64)
        return words < np.uint64(int(self.informative * WORDS))

    def draw(self, inputs: Ints, choose: Callable[[Ints], Ints], generator: Generator) -> Ints:
        """Return each device's message: chosen for its input, or uniform."""
        informative = self.informative_flags(len(inputs), generator)
        chosen = choose(inputs[informative])
        sent = generator.integers(self.messages, size=len(inputs))
        sent[informative] = chosen
        return sent


def scattered(balls: Ints, cells: int, generator: Generator) -> Ints:
    """Throw balls uniformly into cells; each number of balls gives a row of counts.

    The cells are halved again and again, and each half gets its binomial share: as many draws as
    cells, however many balls. Cells after the last have capacity 0.
    """
    width = 1 << (cells - 1).bit_length()
    counts = balls[:, np.newaxis]
    while width > 1:
        capacity = np.clip(cells - np.arange(counts.shape[1]) * width, 0, width)
        width //= 2
        left = generator.binomial(counts, np.minimum(width, capacity) / np.maximum(capacity, 1))
        counts = np.stack([left, counts - left], axis=2).reshape(len(balls), -1)
    return counts[:, :cells]


def summed(places: Ints, devices: Ints, size: int) -> Ints:
    """Return how many devices are at each of so many places."""
    counts = np.zeros(size, np.int64)
    np.add.at(counts, places, devices)
    return counts


def chunks(devices: int) -> Iterator[slice]:
    """Yield slices that together cover so many devices."""
    yield from (slice(begin, begin + CHUNK) for begin in range(0, devices, CHUNK))


def ticked(masks: Ints, values: int) -> Flags:
    """Return which of so many values each mask has, the first in the lowest bit."""
    flags: Flags = (masks[:, np.newaxis] >> np.arange(values) & 1).astype(np.bool_)
    return flags
