"""A search among open strings: the same finds and supports in less memory.

At epsilon 4 there are seven million counters, the most of any. Who meets whom is transformed in
single precision, which leaves every support as it is: they are rounded to integers.
"""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray

from veilcount_analysis.estimation import projective_supports
from veilcount_analysis.estimation.find_budget import chance_of_first
from veilcount_analysis.estimation.prime_factor_fft import Turned
from veilcount_analysis.estimation.projective_supports import Cycle, cycle
from veilcount_analysis.mechanisms import candidate_search
from veilcount_analysis.mechanisms.candidate_search import (
    BLOCK,
    Candidates,
    ReadBuckets,
    found_places,
    open_handler,
)
from veilcount_analysis.simulation import Population, simulate
from veilcount_shared import Collection
from veilcount_shared.domain import OpenStrings

from ...processes import peak_megabytes
from .collection_fixtures import question

Ints = NDArray[np.int64]
MOST_MEGABYTES = 245  # 275 in double precision

SEARCH = """
import numpy as np
from tests.analysis.estimation.test_search_memory import peak_of_a_search
print(peak_of_a_search())
"""


def of_strings() -> tuple[Collection, Candidates]:
    collection = question('values = "open"', "4")
    assert isinstance(collection.domain, OpenStrings)
    texts = [f"item {place}" for place in range(1_000)]
    return collection, Candidates.from_texts(collection.domain, texts)


def peak_of_a_search() -> float:
    """Return the peak memory in MB of a search in a million reports, the counters included."""
    collection, candidates = of_strings()
    messages = open_handler(collection).mechanism.messages
    drawn = np.random.default_rng(1).integers(messages, size=1_000_000)
    counters = np.zeros(messages, np.int64)
    np.add.at(counters, drawn, 1)
    del drawn
    found_places(collection, counters, candidates, chance_of_first(len(candidates.texts)))
    return peak_megabytes()


def searched(seed: int) -> tuple[Ints, Ints]:
    """The supports of all buckets of the first half, and the indices of the candidates found."""
    collection, candidates = of_strings()
    rng, weights = np.random.default_rng(seed), 1 / np.arange(1, 1_001)
    devices = rng.multinomial(1_000_000, weights / weights.sum())
    counters = simulate(collection, Population(candidates.places, devices), rng)
    handler = open_handler(collection)
    found = found_places(collection, counters, candidates, chance_of_first(1_000))
    return handler.bucket_supports(counters)[0], found


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.full) for n in (2, 3))])
def test_single_precision_finds_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    supports, found = searched(seed)
    monkeypatch.setattr(projective_supports, "SINGLE", np.inf)  # double precision, whatever comes
    exact, same = searched(seed)

    assert np.array_equal(supports, exact)
    assert np.array_equal(found, same)
    assert len(found) > 100


def test_a_transform_of_fewer_digits_is_noticed() -> None:
    """Planted: three digits, as of half precision."""
    collection, _ = of_strings()
    plane = open_handler(collection).mechanism.geometry
    cells = np.random.default_rng(1).poisson(3, plane.messages).astype(np.int64)
    large = cycle(plane.q, plane.t)
    exact = large.supports(cells, range(1_000))
    rough = large.meets * (1 + np.random.default_rng(2).normal(0, 1e-3, large.meets.shape))

    assert not np.array_equal(large._rounded(lambda at: cells[at], range(1_000), rough), exact)


def test_many_reports_have_a_transform_in_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Cycle] = []
    small, double = cycle(5, 4), Cycle._meets

    def counted(of: Cycle) -> Turned:
        made.append(of)
        return double(of)

    monkeypatch.setattr(Cycle, "_meets", counted)
    few = np.arange(len(small.points), dtype=np.int64)
    small.supports(few, range(10))
    few_made = len(made)
    large = small.supports(few * 10**6, range(10))

    assert few_made == 0
    assert made
    assert np.array_equal(large, small.supports(few, range(10)) * 10**6)


def scored() -> tuple[ReadBuckets, Candidates]:
    """Scores as of noise with a hundred heavy strings, and a million candidates with these."""
    handler, rng = open_handler(of_strings()[0]), np.random.default_rng(6)
    k, sizes = handler.mechanism.k, np.array([10**6, 10**6])
    bits = 2 * (k - 1).bit_length()
    million = Candidates((), rng.integers(1 << 63, size=1_000_000, dtype=np.uint64), bits)
    scores = rng.normal(size=(2, k))
    for row, buckets in zip(scores, handler.buckets(million.places_at(slice(100))), strict=True):
        row[buckets] += 8
    return ReadBuckets(
        handler, sizes, np.rint(1e5 + 1e3 * scores).astype(np.int64), scores
    ), million


def searched_in_blocks(size: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Ints, float]:
    """The finds of a million candidates in blocks of this size, and the MB that takes."""
    monkeypatch.setattr(candidate_search, "BLOCK", size)
    read, candidates = scored()
    tracemalloc.start()
    found = read.found(candidates, chance_of_first(1_000_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found, peak / 1e6


def test_a_million_candidates_are_looked_up_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: all at once. The same are found, in five times the memory."""
    found, megabytes = searched_in_blocks(BLOCK, monkeypatch)
    at_once, more = searched_in_blocks(1_000_000, monkeypatch)

    assert np.array_equal(found, at_once)
    assert len(np.intersect1d(found, np.arange(100))) > 90
    assert megabytes < 8
    assert more > 40


def test_a_search_takes_less_memory() -> None:
    peak = float(
        subprocess.run(
            [sys.executable, "-c", SEARCH], check=True, capture_output=True, text=True
        ).stdout
    )

    assert peak < MOST_MEGABYTES
