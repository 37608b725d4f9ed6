"""The two-level design as a mixture, and balls thrown into cells: what every simulation draws from.

A device sends a uniform message of its input's set with probability P, else a uniform one outside.
The same law in other words: with probability `telling` a uniform message of its set, else a uniform
message of all M, whatever the input. For a set of r messages

    telling = (P M - r) / (M - r),

which lies between 0 and 1, since P is never below r / M. So the devices that tell nothing are one
crowd without inputs, and only the rest is simulated input by input.

Exactness ends here: each probability is an exact rational, rounded once to the nearest float
(binomials) or down to a multiple of 2^-64 (single devices).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from veilcount_shared.mechanisms import ProjectiveGeometry, SquareWave, SubsetSelection
from veilcount_shared.randomness import WORDS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def telling(mechanism: SubsetSelection | ProjectiveGeometry | SquareWave) -> Fraction:
    """Return the probability that a message is drawn from the input's own set on purpose."""
    owned, messages = _sizes(mechanism)
    return (mechanism.P * messages - owned) / (messages - owned)


def told(
    mechanism: SubsetSelection | ProjectiveGeometry | SquareWave, held: Ints, generator: Generator
) -> Ints:
    """Return how many of the devices of each input tell something."""
    return generator.binomial(held, float(telling(mechanism)))


def tells(
    mechanism: SubsetSelection | ProjectiveGeometry | SquareWave, devices: int, generator: Generator
) -> Flags:
    """Return for each of so many devices whether it tells something."""
    words = generator.integers(WORDS, size=devices, dtype=np.uint64)
    return words < np.uint64(int(telling(mechanism) * WORDS))


def scattered(balls: Ints, cells: int, generator: Generator) -> Ints:
    """Throw balls uniformly into cells; each number of balls gives a row of counts.

    The cells are halved again and again, and each half gets its binomial share: as many draws as
    cells, however many balls. A cell beyond the last has no room.
    """
    width = 1 << (cells - 1).bit_length()
    counts = balls[:, np.newaxis]
    while width > 1:
        room = np.clip(cells - np.arange(counts.shape[1]) * width, 0, width)
        width //= 2
        left = generator.binomial(counts, np.minimum(width, room) / np.maximum(room, 1))
        counts = np.stack([left, counts - left], axis=2).reshape(len(balls), -1)
    return counts[:, :cells]


def _sizes(mechanism: SubsetSelection | ProjectiveGeometry | SquareWave) -> tuple[int, int]:
    """Return how many messages an input owns of how many; of subsets, their ratio w : k."""
    match mechanism:
        case SubsetSelection():
            return mechanism.w, mechanism.k
        case ProjectiveGeometry():
            return mechanism.support_size, mechanism.messages
        case SquareWave():
            return mechanism.width, mechanism.levels
