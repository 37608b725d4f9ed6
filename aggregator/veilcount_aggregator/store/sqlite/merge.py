"""Pieces of several shards into one store: what each has is added to what is there.

Of a piece that comes twice everything is counted twice: a shard is merged in one transaction, once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

import numpy as np

from ..interface import ROW_BYTES, Cell, Counters, TransferPiece
from ..transfer_format import decode_numbers, encode_numbers
from .intake import ensure_series
from .tallies import SqliteTally
from .tally_blobs import pad_zeros


def merge(database: sqlite3.Connection, pieces: Iterable[TransferPiece]) -> None:
    """Add one shard's pieces."""
    for piece in pieces:
        _ADDERS[piece.kind](database, piece)


def _add_dropped(database: sqlite3.Connection, piece: TransferPiece) -> None:
    """Take the furthest: a drop that was stopped midway counts."""
    number, _ = ensure_series(database, piece.key)
    (epochs,) = decode_numbers(piece.body).tolist()
    database.execute(
        "update series set dropped = max(dropped, ?) where number = ?", (epochs, number)
    )


def _add_fresh(database: sqlite3.Connection, piece: TransferPiece) -> None:
    fingerprint, period = piece.key.split("/")
    number, _ = ensure_series(database, fingerprint)
    (rows,) = decode_numbers(piece.body).tolist()
    database.execute(
        "insert into fresh values (?, ?, ?) on conflict do update set rows = rows + excluded.rows",
        (number, period, rows),
    )


def _add_note(database: sqlite3.Connection, piece: TransferPiece) -> None:
    (times,) = decode_numbers(piece.body).tolist()
    database.execute(
        "insert into note values (?, ?, ?, ?, ?)"
        " on conflict do update set times = times + excluded.times",
        (*piece.key.split("/", 3), times),
    )


def _add_spread(database: sqlite3.Connection, piece: TransferPiece) -> None:
    fingerprint, epoch = piece.key.split("/")
    number, _ = ensure_series(database, fingerprint)
    found = database.execute(
        "select rows from spread where series = ? and epoch = ?", (number, epoch)
    ).fetchone()
    held = (
        decode_numbers(piece.body)
        if found is None
        else _sum(decode_numbers(found[0]), decode_numbers(piece.body))
    )
    database.execute("replace into spread values (?, ?, ?)", (number, epoch, encode_numbers(held)))


def _add_tally(database: sqlite3.Connection, piece: TransferPiece) -> None:
    fingerprint, period, segment = piece.key.split("/")
    number, _ = ensure_series(database, fingerprint)
    found = database.execute(
        "select n from tally where series = ? and period = ? and segment = ?",
        (number, period, segment),
    ).fetchone()
    tally, held = (
        SqliteTally(database, number, Cell(int(period), int(segment))),
        decode_numbers(piece.body),
    )
    if found is not None:
        held = _sum(held, np.concatenate([found, tally.read()]))
    tally.put(int(held[0]), held[1:])


def _add_rows(database: sqlite3.Connection, piece: TransferPiece) -> None:
    """Rows of two shards are never the same."""
    fingerprint, epoch, size, _ = piece.key.split("/")
    number, _ = ensure_series(database, fingerprint)
    step, body = ROW_BYTES + int(size), piece.body
    database.executemany(
        "insert into ledger values (?, ?, ?, ?)",
        [
            (number, epoch, body[at : at + ROW_BYTES], body[at + ROW_BYTES : at + step])
            for at in range(0, len(body), step)
        ],
    )


def _sum(first: Counters, second: Counters) -> Counters:
    size = max(len(first), len(second))
    return pad_zeros(first, size) + pad_zeros(second, size)


_ADDERS: dict[str, Callable[[sqlite3.Connection, TransferPiece], None]] = {
    "dropped": _add_dropped,
    "fresh": _add_fresh,
    "note": _add_note,
    "spread": _add_spread,
    "tally": _add_tally,
    "rows": _add_rows,
}
