"""Open strings: how many of the candidates that devices have are found by one test of a list."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from veilcount_aggregator.queries.candidates import StoredSearches
from veilcount_aggregator.store.memory.store import MemoryStore
from veilcount_analysis.kinds.source import Tally
from veilcount_analysis.mechanisms.candidate_search import Candidates
from veilcount_analysis.series.series import Series
from veilcount_analysis.simulation import Population, simulate
from veilcount_shared.domain import OpenStrings

from .definitions import ask
from .measured_figures import Measured

EPSILON, STRINGS, LISTED = 4, 2_000, 322
SIZES = (100_000, 1_000_000, 10_000_000)
ITEM = f"strings among {LISTED} candidates"
ROUNDS_A_SEED = 400  # a search takes seconds


def string_candidates(rounds: int) -> Iterator[Measured]:
    """Test the most frequent strings, the i-th with a probability proportional to 1 / i."""
    domain = OpenStrings("bench")
    question, texts = ask(domain, EPSILON), [f"item {place}" for place in range(STRINGS)]
    everything = Candidates.from_texts(domain, texts)
    candidates = Candidates.from_texts(domain, texts[:LISTED])
    weights = 1 / np.arange(1, STRINGS + 1)
    for n in SIZES:
        found = []
        for seed in range(max(rounds // ROUNDS_A_SEED, 1)):
            generator = np.random.default_rng(seed)
            devices = generator.multinomial(n, weights / weights.sum())
            counters = simulate(question, Population(everything.places, devices), generator)
            searches = StoredSearches(MemoryStore(), Series(question))
            found.append(len(searches.test(Tally(counters), candidates, (ITEM,)).texts))
        yield Measured(ITEM, n, found=float(np.mean(found)) / LISTED)
