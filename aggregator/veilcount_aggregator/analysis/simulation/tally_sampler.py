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
    counts, design = held(collection, population, generator), collection.design
    match design:
        case Identity():
            return counts.copy()
        case SubsetSelection() if design.w > 1 and counts.sum() < design.k:
            # Fewer devices than inputs: to walk through the inputs would take longer.
            inputs = np.repeat(np.arange(design.k), counts)
            return tally(collection, simulate_messages(collection, inputs, generator))
        case SubsetSelection() | ProjectiveGeometry():
            return categories(design, counts, generator)
        case RangeTree():
            return tree(design, counts, generator)
    return levels(design.window, counts, generator)


def categories(
    design: SubsetSelection | ProjectiveGeometry, held: Ints, generator: Generator
) -> Counters:
    """Return how many subsets hold each input, or how many reports name each hyperplane."""
    if isinstance(design, SubsetSelection):
        return supports(design, held, generator)
    telling = told(design, held, generator)
    blind = (held - telling).sum(keepdims=True)
    counts: Counters = scattered(blind, design.messages, generator)[0]
    for points in _in_chunks(telling):
        which = generator.integers(design.owned, size=len(points))
        counts += np.bincount(through(design, points, which), minlength=design.messages)
    return counts


def levels(design: SquareWave, held: Ints, generator: Generator) -> Counters:
    """Return how many reports name each level."""
    telling = told(design, held, generator)
    blind = (held - telling).sum(keepdims=True)
    counts: Counters = scattered(blind, design.levels, generator)[0]
    for start, inside in enumerate(scattered(telling, design.width, generator)):
        counts[start : start + design.width] += inside
    return counts


def tree(design: RangeTree, held: Ints, generator: Generator) -> Counters:
    """Return how many reports name each message: every device draws its level by itself."""
    drawn = scattered(held, len(design.levels), generator)
    parts = [
        categories(level, buckets.reshape(level.inputs, -1).sum(axis=1), generator)
        for level, buckets in zip(design.levels, drawn.T, strict=True)
    ]
    return np.concatenate(parts)


def _in_chunks(telling: Ints) -> Iterator[Ints]:
    """Yield the inputs of the telling reports, so many at a time."""
    ends = np.cumsum(telling)
    for begin in range(0, int(ends[-1]), CHUNK):
        numbers = np.arange(begin, min(begin + CHUNK, int(ends[-1])))
        yield np.searchsorted(ends, numbers, side="right")
