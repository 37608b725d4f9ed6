"""The names of rows: a bijection, even, and out of a hostile device's reach."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from veilcount_aggregator.store.redis.row_permutation import (
    SECRET_BYTES,
    RowPermutation,
    shard_numbers,
)
from veilcount_aggregator.store.series_reports import Bytes

ALPHA = 1e-6
SECRETS = st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES)
SEEDED = RowPermutation(np.random.default_rng(7).bytes(SECRET_BYTES))
MANY = 1 << 16


def _column(numbers: np.ndarray[tuple[int], np.dtype[np.int64]], place: int) -> Bytes:
    """Return rows that differ in four bytes alone."""
    rows = np.zeros((len(numbers), 3), ">u4")
    rows[:, place] = numbers
    return rows.view(np.uint8)


#: rows that a device may send, none of them random
CHOSEN = {
    "counting at the front": _column(np.arange(MANY), 0),
    "counting in the middle": _column(np.arange(MANY), 1),
    "counting at the end": _column(np.arange(MANY), 2),
    "low bytes equal": _column(np.arange(MANY) << 16, 0),
    "high bytes equal": _column(np.arange(MANY) << 8, 2),
}


@given(SECRETS, st.lists(st.binary(min_size=12, max_size=12), min_size=1, max_size=20))
def test_every_name_is_one_row_s(secret: bytes, rows: list[bytes]) -> None:
    drawn_rows = np.frombuffer(b"".join(rows), np.uint8).reshape(-1, 12)
    permutation = RowPermutation(secret)
    names = permutation.apply(drawn_rows)

    assert np.array_equal(permutation.invert(names.fields), drawn_rows)
    assert [int.from_bytes(field[:4].tobytes(), "little") for field in names.fields] == list(
        names.places
    )


@pytest.mark.parametrize("chosen", CHOSEN)
@pytest.mark.parametrize("bits", [1, 6, 10])
def test_chosen_rows_fall_into_buckets_like_random_ones(chosen: str, bits: int) -> None:
    """At most as uneven as chance makes it once in a million times; the secret is seeded."""
    places = SEEDED.apply(CHOSEN[chosen]).places
    loads = np.bincount(places & np.uint32((1 << bits) - 1), minlength=1 << bits)

    assert _unevenness(loads) < chi2.isf(ALPHA, (1 << bits) - 1)


@pytest.mark.parametrize("count", [2, 3, 12, 96])
def test_chosen_rows_fall_into_shards_likewise(count: int) -> None:
    for rows in CHOSEN.values():
        loads = np.bincount(shard_numbers(SEEDED.apply(rows).places, count), minlength=count)

        assert _unevenness(loads) < chi2.isf(ALPHA, count - 1)


def test_without_the_secret_s_work_one_bucket_would_have_them_all() -> None:
    """The check above would notice: under a secret of zeros, a row's place is its own bytes."""
    idle = RowPermutation(bytes(SECRET_BYTES))
    places = idle.apply(_column(np.arange(MANY) << 16, 0)[:, ::-1]).places
    loads = np.bincount(places & np.uint32(63), minlength=64)

    assert _unevenness(loads) > chi2.isf(ALPHA, 63)


#: hashes that a device may send
CHOSEN_HASHES = {
    "counting": np.arange(MANY),
    "the same lower half": np.arange(MANY) << 20,
    "far apart": np.arange(MANY) << 24,
    "beginning alike": (1 << 39) + np.arange(MANY),
}


@given(SECRETS, st.lists(st.integers(0, (1 << 40) - 1), min_size=1, max_size=20))
def test_every_number_is_one_hash_s(secret: bytes, hashes: list[int]) -> None:
    permutation = RowPermutation(secret)
    numbers = permutation.apply_hashes(np.array(hashes))

    assert permutation.invert_hashes(numbers).tolist() == hashes
    assert all(0 <= number < 1 << 40 for number in numbers.tolist())


@pytest.mark.parametrize("chosen", CHOSEN_HASHES)
@pytest.mark.parametrize("bits", [1, 6, 10, 13])
def test_chosen_hashes_fall_into_pages_like_random_ones(chosen: str, bits: int) -> None:
    """At most as uneven as above; under a secret of zeros, one page would have them."""
    for permutation, even in ((SEEDED, True), (RowPermutation(bytes(SECRET_BYTES)), False)):
        pages = permutation.apply_hashes(CHOSEN_HASHES[chosen]) >> 40 - bits
        loads = np.bincount(pages, minlength=1 << bits)
        if even:
            assert _unevenness(loads) < chi2.isf(ALPHA, (1 << bits) - 1)
        elif chosen in {"counting", "beginning alike"}:
            assert loads.max() == MANY


def test_a_secret_has_its_length() -> None:
    with pytest.raises(ValueError, match="48 bytes"):
        RowPermutation(b"short")


def test_a_secret_is_not_shown() -> None:
    permutation = RowPermutation.new()

    assert repr(permutation) == "RowPermutation()"
    assert RowPermutation.new() != permutation


def _unevenness(loads: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    """Pearson's statistic."""
    expected = loads.sum() / len(loads)
    return float(((loads - expected) ** 2).sum() / expected)
