"""Open strings of a known population, and which of some candidates a search finds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection

from ...estimation.confidence_intervals import Bools
from ...estimation.estimator import IntervalTarget
from ...estimation.open_strings import chance
from ...mechanisms.candidate_search import Candidates, found_places, open_handler
from ...sampling import Floats, Ints
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
    candidates: int
    false: int  # candidates found that no device has
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
    handler = open_handler(collection)
    chosen = found_places(collection, counters, candidates, alpha)
    evidence = handler.evidence(counters, candidates.places[chosen])
    low, high = evidence.interval(1 - level, IntervalTarget.COHORT)
    figures = np.full((3, len(candidates.texts)), np.nan)
    figures[:, chosen] = evidence.points, low, high
    return SimulatedSearch(
        n=n,
        epsilon=float(collection.unit_epsilon),
        level=level,
        texts=candidates.texts[:held],
        truth=devices / n,
        local=SimulatedEstimate(*figures[:, :held]),
        candidates=len(candidates.texts),
        false=int(np.count_nonzero(chosen >= held)),
        least_share=handler.least_share(n, alpha),
    )
