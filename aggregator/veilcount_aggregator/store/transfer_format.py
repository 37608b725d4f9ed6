"""How the parts of a store are written on their way to another: the same bytes in every engine.

| kind    | key                          | body                                               |
|---------|------------------------------|----------------------------------------------------|
| record  | kind/key of the shelf        | its value                                          |
| dropped | fingerprint                  | the first epoch that was not dropped               |
| fresh   | fingerprint/period           | how many new rows                                  |
| note    | what/fingerprint/period/word | how many                                           |
| spread  | fingerprint/epoch            | how many rows have spent 1, 2, .. slots            |
| tally   | fingerprint/period/segment   | n, then the counters                               |
| rows    | fingerprint/epoch/width/byte | each row's 12 bytes and its bitmap, ascending      |

`byte` is the rows' first, as two hex digits; a bitmap has `width` bytes, slot 0 in the lowest bit
of the first. Numbers in bodies are 64-bit, little-endian; in keys decimal. Zeros at the end of a
spread or a tally are cut: what was never counted has no length, so no definition is needed here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .interface import Counters, TransferPiece

KINDS = ("record", "dropped", "fresh", "note", "spread", "tally", "rows")


def encode_numbers(values: Iterable[int] | NDArray[np.int64]) -> bytes:
    """Return numbers as a body."""
    given = values if isinstance(values, np.ndarray) else np.fromiter(values, np.int64)
    return given.astype("<i8").tobytes()


def decode_numbers(body: bytes) -> Counters:
    """Return the numbers of a body."""
    return np.frombuffer(body, "<i8").astype(np.int64)


def join_key(*parts: str | int) -> str:
    """Return a key."""
    return "/".join(map(str, parts))


def bitmap_bytes(slots: int) -> int:
    """Return how many bytes a bitmap of so many slots has."""
    return -(-slots // 8)


def content_digest(pieces: Iterable[TransferPiece]) -> str:
    """Return one name for the content of all pieces, in whatever order they come."""
    total = 0
    for piece in pieces:
        text = b"\0".join([piece.kind.encode(), piece.key.encode(), piece.body])
        total += int.from_bytes(hashlib.sha256(text).digest(), "big")
    return f"{total % (1 << 256):064x}"
