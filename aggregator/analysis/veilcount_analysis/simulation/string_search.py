"""Open strings of a known population, and which of them a search finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection

from ..estimation.confidence_intervals import Bools
from ..estimation.estimator import IntervalTarget
from ..estimation.open_strings import DISCOVERIES, chance
from ..mechanisms.candidate_search import (
    Candidates,
    discovered,
    found_places,
    open_domain,
    open_handler,
)
from ..mechanisms.sampling import Floats, Ints
from ..series.packed_rows import Counters
from .local_vs_central import SimulatedEstimate
from .population import Population, simulate


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedSearch:
    """The true share of each string that a device has, and its estimate; NaN: not found."""

    n: int
    epsilon: float
    level: float
    texts: tuple[str, ...]
    truth: Floats
    local: SimulatedEstimate
    candidates: int  # that were tested; without candidates, none
    false: int  # strings found that no device has
    least_share: float  # of a string that is found half of the time

    @property
    def found(self) -> Bools:
        """Whether each string was found."""
        return np.isfinite(self.local.value)


def simulate_search(
    collection: Collection,
    candidates: Candidates,
    devices: Ints,
    generator: Generator,
    level: float = 0.95,
) -> SimulatedSearch:
    """Test candidates, the first of which so many devices have each, in one report a device."""
    held, alpha, n = len(devices), chance(len(candidates.texts)), int(devices.sum())
    counters = simulate(collection, Population(candidates.places[:held], devices), generator)
    chosen = found_places(collection, counters, candidates, alpha)
    figures = _figures(collection, counters, candidates, chosen, level)
    return SimulatedSearch(
        n=n,
        epsilon=float(collection.unit_epsilon),
        level=level,
        texts=candidates.texts[:held],
        truth=devices / n,
        local=SimulatedEstimate(*figures[:, :held]),
        candidates=len(candidates.texts),
        false=int(np.count_nonzero(chosen >= held)),
        least_share=open_handler(collection).least_share(n, alpha),
    )


def simulate_discovery(
    collection: Collection,
    held: Candidates,
    devices: Ints,
    generator: Generator,
    level: float = 0.95,
) -> SimulatedSearch:
    """Find strings letter by letter, of which so many devices have each."""
    n, alpha = int(devices.sum()), chance(1, DISCOVERIES)
    counters = draw_beginnings(collection, held.texts, devices, generator)
    places = {text: place for place, text in enumerate(held.texts)}
    found = discovered(collection, counters, (), alpha).texts
    chosen = np.array([places[text] for text in found if text in places], np.int64)
    figures = _figures(collection, counters, held, chosen, level)
    return SimulatedSearch(
        n=n,
        epsilon=float(collection.unit_epsilon),
        level=level,
        texts=held.texts,
        truth=devices / n,
        local=SimulatedEstimate(*figures),
        candidates=0,
        false=len(found) - len(chosen),
        least_share=open_handler(collection).least_share(n, alpha),
    )


def draw_beginnings(
    collection: Collection, texts: Sequence[str], devices: Ints, generator: Generator
) -> Counters:
    """Return the counters of one report of each device, of strings found letter by letter."""
    domain = open_domain(collection)
    split = generator.multinomial(devices, [1 / domain.parts] * domain.parts)
    counts = np.zeros((domain.parts, 1 << domain.bucket_bits), np.int64)
    for row, length, part in zip(counts, domain.prefixes, split.T, strict=True):
        digests = b"".join(domain.digest(text, length)[:8] for text in texts)
        buckets = np.frombuffer(digests, ">u8") >> np.uint64(64 - domain.bucket_bits)
        np.add.at(row, buckets.astype(np.int64), part)
    return open_handler(collection).draw_counters(counts.ravel(), generator)


def _figures(
    collection: Collection, counters: Counters, candidates: Candidates, chosen: Ints, level: float
) -> Floats:
    """Return the estimates, lows and highs of the chosen ones; NaN: of the others."""
    evidence = open_handler(collection).evidence(counters, candidates.places[chosen])
    low, high = evidence.interval(1 - level, IntervalTarget.COHORT)
    figures = np.full((3, len(candidates.texts)), np.nan)
    figures[:, chosen] = evidence.points, low, high
    return figures
