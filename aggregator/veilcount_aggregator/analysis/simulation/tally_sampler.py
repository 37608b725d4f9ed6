"""The exact joint law of a tally, drawn for a whole population at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.mechanisms import (
    Identity,
    ProjectiveGeometry,
    RangeTree,
    SquareWave,
    SubsetSelection,
)

from ...series.tally import Counters, tally
from .message_sampler import CHUNK, simulate_messages
from .mixture import Ints, scattered, told
from .population import Population, held
from .projective_columns import through
from .subset_sampler import supports


def simulate(
    collection: Collection, population: Population | Ints, generator: Generator
) -> Counters:
    """Return the counters that `tally` would make of one report of each device.

    An array says how many devices hold each of the design's inputs: values, the buckets of a
    distribution, the starts of a mean. Nothing is kept of single devices.
    """
    counts, mechanism = held(collection, population, generator), collection.mechanism
    match mechanism:
        case Identity():
            return counts.copy()
        case SubsetSelection() if mechanism.w > 1 and counts.sum() < mechanism.k:
            # Fewer devices than inputs: to walk through the inputs would take longer.
            inputs = np.repeat(np.arange(mechanism.k), counts)
            return tally(collection, simulate_messages(collection, inputs, generator))
        case SubsetSelection() | ProjectiveGeometry():
            return categories(mechanism, counts, generator)
        case RangeTree():
            return tree(mechanism, counts, generator)
    return levels(mechanism.window, counts, generator)


def categories(
    mechanism: SubsetSelection | ProjectiveGeometry, held: Ints, generator: Generator
) -> Counters:
    """Return how many subsets hold each input, or how many reports name each hyperplane."""
    if isinstance(mechanism, SubsetSelection):
        return supports(mechanism, held, generator)
    telling = told(mechanism, held, generator)
    blind = (held - telling).sum(keepdims=True)
    counts: Counters = scattered(blind, mechanism.messages, generator)[0]
    for points in _in_chunks(telling):
        which = generator.integers(mechanism.support_size, size=len(points))
        counts += np.bincount(through(mechanism, points, which), minlength=mechanism.messages)
    return counts


def levels(mechanism: SquareWave, held: Ints, generator: Generator) -> Counters:
    """Return how many reports name each level."""
    telling = told(mechanism, held, generator)
    blind = (held - telling).sum(keepdims=True)
    counts: Counters = scattered(blind, mechanism.levels, generator)[0]
    for start, inside in enumerate(scattered(telling, mechanism.width, generator)):
        counts[start : start + mechanism.width] += inside
    return counts


def tree(mechanism: RangeTree, held: Ints, generator: Generator) -> Counters:
    """Return how many reports name each message: every device draws its level by itself."""
    drawn = scattered(held, len(mechanism.levels), generator)
    parts = [
        categories(level, buckets.reshape(level.inputs, -1).sum(axis=1), generator)
        for level, buckets in zip(mechanism.levels, drawn.T, strict=True)
    ]
    return np.concatenate(parts)


def _in_chunks(telling: Ints) -> Iterator[Ints]:
    """Yield the inputs of the telling reports, so many at a time."""
    ends = np.cumsum(telling)
    for begin in range(0, int(ends[-1]), CHUNK):
        numbers = np.arange(begin, min(begin + CHUNK, int(ends[-1])))
        yield np.searchsorted(ends, numbers, side="right")
