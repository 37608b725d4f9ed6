"""Pieces kept in a nameless file for a moment: read quickly, written elsewhere at leisure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO

import msgspec

from .interface import TransferPiece

LENGTH_BYTES = 8

_DECODER = msgspec.msgpack.Decoder(TransferPiece)


def write_spool(file: IO[bytes], pieces: Iterable[TransferPiece]) -> None:
    """Append pieces."""
    for piece in pieces:
        body = msgspec.msgpack.encode(piece)
        file.write(len(body).to_bytes(LENGTH_BYTES, "big"))
        file.write(body)


def read_spool(file: IO[bytes]) -> Iterator[TransferPiece]:
    """Return them, from the first."""
    file.seek(0)
    while length := file.read(LENGTH_BYTES):
        yield _DECODER.decode(file.read(int.from_bytes(length, "big")))
