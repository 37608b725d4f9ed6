"""The place of a row, and of a string's hash: keyed permutations of their bytes.

Pseudonyms are chosen by devices. A hostile one that could tell which rows share a bucket would fill
a single one. So a row is kept under a name that only the store can compute: two rounds of a Feistel
network, whose round functions are strongly universal [Dietzfelbinger 1996]: of any two rows, chosen
without the secret, the places are uniform and independent. No cipher: the secret stands next to the
rows, and whoever reads one reads the other.

A name's first four bytes, little-endian, are the row's place: its high bits choose the shard, its
low bits the bucket.

A hash is a device's choice as well, and its first bits choose its page. It is kept as x a, with its
lower half xored by the upper one, times b, modulo 2^40, for secret odd a and b: of any two hashes
the first bits agree with at most twice the chance of uniform ones [Dietzfelbinger et al. 1997].
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from veilcount_shared.domain import HASH_BITS

from ..series_reports import ROW_BYTES, Bytes

SECRET_BYTES = 48
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class PermutedRows:
    """The kept names of rows, and their places."""

    fields: Bytes  # (n, 12)
    places: NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class RowPermutation:
    """The keyed permutation of one store."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != SECRET_BYTES:
            raise ValueError(f"a secret has {SECRET_BYTES} bytes")

    @classmethod
    def new(cls) -> RowPermutation:
        """Draw a secret."""
        return cls(secrets.token_bytes(SECRET_BYTES))

    def apply(self, rows: Bytes) -> PermutedRows:
        """Return the names under which rows are kept."""
        words = _words(rows)
        words[:, 1] += self._first(words)
        words[:, 0] += self._second(words)
        return PermutedRows(words.view(np.uint8), words[:, 0])

    def invert(self, fields: Bytes) -> Bytes:
        """Return the rows that are kept under these names."""
        words = _words(fields)
        words[:, 0] -= self._second(words)
        words[:, 1] -= self._first(words)
        return words.view(np.uint8)

    def apply_hashes(self, hashes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers that stand for hashes."""
        return _folded(hashes, *self._factors())

    def invert_hashes(self, kept: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the hashes that numbers stand for."""
        first, second = (pow(factor, -1, 1 << HASH_BITS) for factor in self._factors())
        return _folded(kept, second, first)

    def _factors(self) -> tuple[int, int]:
        """Return two odd numbers of the secret."""
        first, second, *_ = np.frombuffer(self.secret, "<u8").tolist()
        return first % (1 << HASH_BITS) | 1, second % (1 << HASH_BITS) | 1

    def _first(self, words: NDArray[np.uint32]) -> NDArray[np.uint32]:
        a, b, *_ = np.frombuffer(self.secret, "<u8")
        return _high(words[:, 0].astype(np.uint64) * a + b)

    def _second(self, words: NDArray[np.uint32]) -> NDArray[np.uint32]:
        *_, start, a, b, c = np.frombuffer(self.secret, "<u8")
        low, high = words[:, 1].astype(np.uint64), words[:, 2].astype(np.uint64)
        mixed = _mix((high << _HALF | low) + start)
        return _high((mixed & _LOW) * a + (mixed >> _HALF) * b + c)


def _folded(numbers: NDArray[np.int64], first: int, second: int) -> NDArray[np.int64]:
    """Multiply, xor the halves, and multiply, modulo 2^40; the middle is its own inverse."""
    last = np.uint64((1 << HASH_BITS) - 1)
    words = numbers.astype(np.uint64) * np.uint64(first) & last
    words ^= words >> np.uint64(HASH_BITS // 2)
    return (words * np.uint64(second) & last).astype(np.int64)


def shard_numbers(places: NDArray[np.uint32], count: int) -> NDArray[np.int64]:
    """Return the shard of each place."""
    return (places.astype(np.uint64) * np.uint64(count) >> _HALF).astype(np.int64)


def _words(rows: Bytes) -> NDArray[np.uint32]:
    words: NDArray[np.uint32] = np.array(rows, np.uint8).reshape(-1, ROW_BYTES).view("<u4")
    return words


def _high(words: NDArray[np.uint64]) -> NDArray[np.uint32]:
    return (words >> _HALF).astype(np.uint32)


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Break up patterns, and lose nothing: universality alone allows rows in a row to cluster.

    The finalizer of SplitMix64 [Steele, Lea, Flood 2014].
    """
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words
