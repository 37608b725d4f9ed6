"""A count of distinct hashes, of fixed size."""

from __future__ import annotations

import numpy as np
import pytest

from veilcount_analysis.estimation.distinct_count import DistinctCount


def hashes(number: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(1 << 64, size=number, dtype=np.uint64)


@pytest.mark.parametrize("number", [0, 1, 40, 2_000, 40_000, 1_000_000])
def test_distinct_hashes_are_counted_to_within_four_standard_errors(number: int) -> None:
    counted = DistinctCount.from_bytes(b"").with_hashes(hashes(number))

    assert counted.estimate == pytest.approx(number, rel=0.033, abs=1)


def test_a_hash_counts_once_whenever_it_comes_and_whoever_stores_it() -> None:
    all_at_once = DistinctCount.from_bytes(b"").with_hashes(hashes(5_000))
    one = DistinctCount.from_bytes(b"").with_hashes(hashes(5_000)[:3_000])
    stored = DistinctCount.from_bytes(one.to_bytes())

    assert stored.with_hashes(hashes(5_000)[2_000:]).to_bytes() == all_at_once.to_bytes()
    assert all_at_once.with_hashes(hashes(5_000)[::-1]).estimate == all_at_once.estimate
