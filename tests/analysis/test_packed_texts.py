"""Packed strings are a sequence of these strings, and candidates keep the first of the same."""

from __future__ import annotations

import tracemalloc

import pytest

from veilcount_analysis.mechanisms.candidate_search import Candidates
from veilcount_analysis.packed_texts import BLOCK, PackedTexts
from veilcount_shared.domain import PREFIX_BITS, PREFIXES, OpenStrings

TEXTS = ["", "café", "\ud800", *(f"word {number}" for number in range(2 * BLOCK))]


@pytest.mark.parametrize("count", [0, 1, 3, BLOCK, BLOCK + 1, len(TEXTS)])
def test_packed_texts_are_a_sequence(count: int) -> None:
    texts = TEXTS[:count]
    packed = PackedTexts.from_texts(iter(texts))

    assert list(packed) == texts
    assert len(packed) == count
    assert [packed[place] for place in range(-count, count)] == texts * 2
    assert packed[1:BLOCK:7] == tuple(texts[1:BLOCK:7])
    with pytest.raises(IndexError):
        packed[count]


@pytest.mark.parametrize("prefixes", [(), PREFIXES])
def test_the_first_of_the_same_candidates_is_kept(prefixes: tuple[int, ...]) -> None:
    """Of beginnings, different strings have the same hash, and are different candidates."""
    domain = OpenStrings("word", PREFIX_BITS, prefixes) if prefixes else OpenStrings("word")
    texts = ["international a", " walk", "international b", "walk ", "\n", "walk"] * 300
    candidates = Candidates.from_texts(domain, iter(texts))

    assert list(candidates.texts) == ["international a", "walk", "international b"]
    assert len(set(candidates.hashes.tolist())) == (2 if prefixes else 3)
    assert candidates.unreadable == ("\n",) * 300


def test_many_candidates_take_little_memory() -> None:
    """A list of them alone takes 7 MB, a dictionary 12."""
    tracemalloc.start()
    candidates = Candidates.from_texts(OpenStrings("w"), (f"word {n}" for n in range(100_000)))
    megabytes = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()

    assert len(candidates.texts) == 100_000
    assert megabytes < 3
