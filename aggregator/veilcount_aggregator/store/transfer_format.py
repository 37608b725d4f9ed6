"""The format of pieces, the parts of a store in transfer: the same bytes in every engine.

| kind            | key                          | body                                       |
|-----------------|------------------------------|--------------------------------------------|
| record          | kind/key of the record       | its value                                  |
| dropped         | fingerprint                  | the first epoch that was not dropped       |
| new_rows        | fingerprint/period           | how many new rows                          |
| service_counter | what/fingerprint/period/word | how many                                   |
| spent_rows      | fingerprint/epoch            | how many rows have spent 1, 2, .. slots    |
| tally           | fingerprint/period/segment   | n, then the counters                       |
| hashes          | fingerprint/period/segment   | n, the hashes ascending, then their counts |
| rows            | fingerprint/epoch/width/byte | each row's 12 bytes and bitmap, ascending  |
| batch           | fingerprint/key of the batch | its entry                                  |
| tokens          | fingerprint/period/byte      | each spent row's 12 bytes, ascending       |

`byte` is the rows' first, as two hex digits; a bitmap has `width` bytes, slot 0 in the lowest bit
of the first. Numbers in bodies are 64-bit, little-endian; in keys decimal. Zeros at the end of a
spread or a tally are cut: what was never counted has no length, so no definition is needed here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import IO

import msgspec
import numpy as np
from numpy.typing import NDArray

from veilcount_analysis.series.hash_counts import merge_hash_counts

from .interface import Cell, Record, TransferPiece
from .series_reports import ROW_BYTES, Counters

KINDS = (
    *("record", "dropped", "new_rows", "service_counter", "spent_rows", "tally", "rows"),
    *("hashes", "batch", "tokens"),
)


def encode_numbers(values: Iterable[int] | NDArray[np.int64]) -> bytes:
    """Encode numbers as a body."""
    numbers = values if isinstance(values, np.ndarray) else np.fromiter(values, np.int64)
    return numbers.astype("<i8", copy=False).tobytes()


def decode_numbers(body: bytes) -> Counters:
    """Decode the numbers of a body."""
    return np.frombuffer(body, "<i8").astype(np.int64)


def join_key(*parts: str | int) -> str:
    """Return the key with these parts."""
    return "/".join(map(str, parts))


def numbers_piece(
    kind: str, numbers: Iterable[int] | NDArray[np.int64], *key: str | int
) -> TransferPiece:
    """Return a piece of numbers."""
    return TransferPiece(kind, join_key(*key), encode_numbers(numbers))


def histogram_piece(numbers: Counters, fingerprint: str, epoch: int) -> TransferPiece:
    """Return the piece of a spend histogram."""
    return numbers_piece("spent_rows", trim_zeros(numbers), fingerprint, epoch)


def tally_piece(reports: int, counters: Counters, fingerprint: str, cell: Cell) -> TransferPiece:
    """Return the piece of a tally."""
    if counters.ndim > 1:
        hash_numbers = np.append(reports, counters)
        return numbers_piece("hashes", hash_numbers, fingerprint, *cell)
    numbers = trim_zeros(np.concatenate([[reports], counters]))
    return numbers_piece("tally", numbers, fingerprint, *cell)


def parse_tally(piece: TransferPiece) -> tuple[int, Counters]:
    """Return the number of reports and the counters of such a piece."""
    numbers = decode_numbers(piece.body)
    counters = numbers[1:]
    return int(numbers[0]), counters.reshape(2, -1) if piece.kind == "hashes" else counters


def batch_piece(fingerprint: str, key: str, entry: bytes) -> TransferPiece:
    """Return the piece of a batch's entry."""
    return TransferPiece("batch", join_key(fingerprint, key), entry)


def token_pieces(fingerprint: str, period: int, rows: Iterable[bytes]) -> Iterator[TransferPiece]:
    """Return the pieces of a period's spent tokens."""
    for first, group in groupby(sorted(rows), lambda row: row[0]):
        yield TransferPiece(
            "tokens", join_key(fingerprint, period, f"{first:02x}"), b"".join(group)
        )


def token_rows(body: bytes) -> list[bytes]:
    """Return the rows of such a piece."""
    return [body[at : at + ROW_BYTES] for at in range(0, len(body), ROW_BYTES)]


def parse_record(piece: TransferPiece) -> Record:
    """Return the record of a piece."""
    kind, key = piece.key.split("/", 1)
    return Record(kind, key, piece.body)


def bitmap_bytes(slots: int) -> int:
    """Return the size in bytes of a bitmap of slots."""
    return -(-slots // 8)


def content_digest(pieces: Iterable[TransferPiece]) -> str:
    """Return the digest of all pieces; their order does not matter."""
    total = 0
    for piece in pieces:
        text = b"\0".join([piece.kind.encode(), piece.key.encode(), piece.body])
        total += int.from_bytes(hashlib.sha256(text).digest(), "big")
    return f"{total % (1 << 256):064x}"


def trim_zeros(numbers: Counters) -> Counters:
    """Return numbers without the zeros at their end."""
    places = np.flatnonzero(numbers)
    return numbers[: places[-1] + 1 if len(places) else 0]


def pad_zeros(numbers: Counters, size: int) -> Counters:
    """Return a copy of numbers with zeros at its end, of at least this size."""
    padded = np.zeros(max(size, len(numbers)), np.int64)
    padded[: len(numbers)] = numbers
    return padded


def add_padded(first: Counters, second: Counters) -> Counters:
    """Return the sum of two, as long as the longer one; of hashes, each once."""
    if second.ndim > 1:
        return merge_hash_counts([first.reshape(2, -1), second])
    total = pad_zeros(first, len(second))
    total[: len(second)] += second
    return total


# -- pieces in a file ------------------------------------------------------------------------------

LENGTH_BYTES = 8

_DECODER = msgspec.msgpack.Decoder(TransferPiece)


def write_spool(file: IO[bytes], pieces: Iterable[TransferPiece]) -> None:
    """Append pieces to a file."""
    for piece in pieces:
        body = msgspec.msgpack.encode(piece)
        file.write(len(body).to_bytes(LENGTH_BYTES, "big"))
        file.write(body)


def read_spool(file: IO[bytes]) -> Iterator[TransferPiece]:
    """Yield the pieces of a file."""
    file.seek(0)
    while length := file.read(LENGTH_BYTES):
        yield _DECODER.decode(file.read(int.from_bytes(length, "big")))
