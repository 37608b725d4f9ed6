"""Open strings at one n and epsilon, in a process of its own: prints a line of JSON."""

from __future__ import annotations

import json
import sys
from datetime import date
from fractions import Fraction
from pathlib import Path
from time import process_time

import numpy as np

from veilcount_analysis.estimation.distinct_count import DistinctCount
from veilcount_analysis.estimation.open_strings import chance
from veilcount_analysis.mechanisms.candidate_search import Candidates, found_places
from veilcount_analysis.simulation import Population, simulate
from veilcount_shared import Collection
from veilcount_shared.domain import OpenStrings
from veilcount_shared.periods import Unit

from .estimate_worker import _peak

STRINGS = 60_000  # that devices have: the i-th with a probability proportional to 1 / i
CANDIDATES = 1_000_000
DOMAIN = OpenStrings("bench")


def main() -> None:
    """Search a million candidates in the reports of n devices, once for each seed."""
    n, epsilon, seeds = int(float(sys.argv[1])), Fraction(sys.argv[2]), int(sys.argv[3])
    collection, texts = (
        collection_of(DOMAIN, epsilon),
        [f"word {place}" for place in range(CANDIDATES)],
    )
    begin = process_time()
    candidates = Candidates.from_texts(DOMAIN, texts)
    hashed = process_time() - begin
    alpha = chance(DistinctCount.from_bytes(b"").with_hashes(candidates.hashes).estimate)
    weights = 1 / np.arange(1, STRINGS + 1)
    rounds, searched, start = [], [], _peak()
    for seed in range(seeds):
        generator = np.random.default_rng(seed)
        held = generator.permutation(CANDIDATES)[:STRINGS]
        devices = generator.multinomial(n, weights / weights.sum())
        people = Population(candidates.places[held], devices)
        counters = simulate(collection, people, generator)
        forget_peak()
        begin = process_time()
        found = found_places(collection, counters, candidates, alpha)
        searched.append(process_time() - begin)
        real = np.isin(found, held[:STRINGS])
        recall = [np.isin(held[:top], found).mean() for top in (10, 50, 100)]
        rounds.append([*recall, len(found), np.count_nonzero(~real)])
    means = np.mean(rounds, axis=0).tolist()
    names = ("@10", "@50", "@100", "found", "false")
    print(
        json.dumps(
            dict(zip(names, means, strict=True))
            | {
                "hash s": hashed,
                "decode s": float(np.median(searched)),
                "start MB": start,
                "MB": _peak(),
            }
        )
    )


def forget_peak() -> None:
    """Begin the peak memory anew: that of the simulation is none of a search."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def collection_of(domain: OpenStrings, epsilon: Fraction) -> Collection:
    """Return a question about open strings."""
    return Collection(
        app="bench",
        name="bench",
        question="Which word?",
        domain=domain,
        epsilon=epsilon,
        unit=Unit.USER,
        start=date(2026, 1, 1),
        until=date(2026, 2, 1),
    )


if __name__ == "__main__":
    main()
