"""A store's content on its way to another, in SQL: each kind of piece is read and written here."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..interface import ROW_BYTES, Cell, Counters, TransferPiece
from ..transfer_format import decode_numbers, encode_numbers, join_key
from . import records
from .database import SqliteDatabase
from .intake import ensure_series
from .tallies import SqliteTally
from .tally_blobs import trim_zeros

_Series = tuple[int, str, int]  # number, fingerprint, the first epoch that was not dropped


def pieces(file: SqliteDatabase) -> Iterator[TransferPiece]:
    """Return everything, kind by kind. No reading lasts longer than one piece takes."""
    with file.reading() as database:
        small = [*_records(database), *_dropped(database), *_fresh(database), *_notes(database)]
        known: list[_Series] = database.execute(
            "select number, fingerprint, dropped from series order by fingerprint"
        ).fetchall()
    yield from small
    for series in known:
        with file.reading() as database:
            spread = list(_spread(database, series))
        yield from spread
    for series in known:
        yield from _tallies(file, series)
    for series in known:
        yield from _rows(file, series)


def absorb(database: sqlite3.Connection, given: Sequence[TransferPiece]) -> None:
    """Write pieces in place of what stands there."""
    for piece in given:
        _WRITERS[piece.kind](database, piece)
    kinds = {piece.key.partition("/")[0] for piece in given if piece.kind == "record"}
    if kinds:
        records.changed(database, kinds)


# -- reading ---------------------------------------------------------------------------------------


def _records(database: sqlite3.Connection) -> Iterator[TransferPiece]:
    for kind, key, value in database.execute("select * from record order by kind, key"):
        yield TransferPiece("record", join_key(kind, key), value)


def _dropped(database: sqlite3.Connection) -> Iterator[TransferPiece]:
    for fingerprint, dropped in database.execute(
        "select fingerprint, dropped from series where dropped > 0 order by fingerprint"
    ):
        yield TransferPiece("dropped", fingerprint, encode_numbers([dropped]))


def _fresh(database: sqlite3.Connection) -> Iterator[TransferPiece]:
    for fingerprint, period, rows in database.execute(
        "select fingerprint, period, rows from fresh join series on series = number"
        " order by fingerprint, period"
    ):
        yield TransferPiece("fresh", join_key(fingerprint, period), encode_numbers([rows]))


def _notes(database: sqlite3.Connection) -> Iterator[TransferPiece]:
    for *words, times in database.execute("select * from note"):
        yield TransferPiece("note", join_key(*words), encode_numbers([times]))


def _spread(database: sqlite3.Connection, series: _Series) -> Iterator[TransferPiece]:
    number, fingerprint, _ = series
    for epoch, rows in database.execute(
        "select epoch, rows from spread where series = ? order by epoch", (number,)
    ):
        yield TransferPiece(
            "spread", join_key(fingerprint, epoch), encode_numbers(trim_zeros(decode_numbers(rows)))
        )


def _tallies(file: SqliteDatabase, series: _Series) -> Iterator[TransferPiece]:
    number, fingerprint, _ = series
    with file.reading() as database:
        cells = database.execute(
            "select period, segment, n from tally where series = ? order by period, segment",
            (number,),
        ).fetchall()
    for period, segment, n in cells:
        with file.reading() as database:
            counters = SqliteTally(database, number, Cell(period, segment)).read()
        body = encode_numbers(trim_zeros(np.concatenate([[n], counters])))
        yield TransferPiece("tally", join_key(fingerprint, period, segment), body)


def _rows(file: SqliteDatabase, series: _Series) -> Iterator[TransferPiece]:
    number, fingerprint, epoch = series
    while True:
        with file.reading() as database:
            found = database.execute(
                "select epoch, length(spent) from ledger where series = ? and epoch >= ?"
                " order by epoch limit 1",
                (number, epoch),
            ).fetchone()
        if found is None:
            return
        epoch, size = found
        for first in range(256):
            with file.reading() as database:
                rows = database.execute(_BUCKET, (number, epoch, *_between(first))).fetchall()
            if rows:
                body = b"".join(part for row in rows for part in row)
                yield TransferPiece(
                    "rows", join_key(fingerprint, epoch, size, f"{first:02x}"), body
                )
        epoch += 1


_BUCKET = (
    "select row, spent from ledger where series = ? and epoch = ? and row between ? and ?"
    " order by row"
)


def _between(first: int) -> tuple[bytes, bytes]:
    """Return the least and the greatest row with this first byte."""
    byte = bytes([first])
    return byte + bytes(ROW_BYTES - 1), byte + b"\xff" * (ROW_BYTES - 1)


# -- writing ---------------------------------------------------------------------------------------


def _put_record(database: sqlite3.Connection, piece: TransferPiece) -> None:
    kind, key = piece.key.split("/", 1)
    records.put(database, kind, key, piece.body)


def _put_dropped(database: sqlite3.Connection, piece: TransferPiece) -> None:
    number, _ = ensure_series(database, piece.key)
    # Rows of dropped epochs are not carried: nothing of what the source had dropped can come back.
    database.execute("delete from dropping where series = ?", (number,))
    database.execute(
        "update series set dropped = ?1, swept = ?1 where number = ?2", (_one(piece.body), number)
    )


def _put_fresh(database: sqlite3.Connection, piece: TransferPiece) -> None:
    fingerprint, period = piece.key.split("/")
    number, _ = ensure_series(database, fingerprint)
    database.execute("replace into fresh values (?, ?, ?)", (number, period, _one(piece.body)))


def _put_note(database: sqlite3.Connection, piece: TransferPiece) -> None:
    words = piece.key.split("/", 3)
    database.execute("replace into note values (?, ?, ?, ?, ?)", (*words, _one(piece.body)))


def _put_spread(database: sqlite3.Connection, piece: TransferPiece) -> None:
    fingerprint, epoch = piece.key.split("/")
    number, _ = ensure_series(database, fingerprint)
    database.execute("replace into spread values (?, ?, ?)", (number, epoch, piece.body))


def _put_tally(database: sqlite3.Connection, piece: TransferPiece) -> None:
    fingerprint, period, segment = piece.key.split("/")
    number, _ = ensure_series(database, fingerprint)
    held: Counters = decode_numbers(piece.body)
    SqliteTally(database, number, Cell(int(period), int(segment))).put(int(held[0]), held[1:])


def _put_rows(database: sqlite3.Connection, piece: TransferPiece) -> None:
    fingerprint, epoch, size, first = piece.key.split("/")
    number, _ = ensure_series(database, fingerprint)
    database.execute(
        "delete from ledger where series = ? and epoch = ? and row between ? and ?",
        (number, epoch, *_between(int(first, 16))),
    )
    step, body = ROW_BYTES + int(size), piece.body
    database.executemany(
        "insert into ledger values (?, ?, ?, ?)",
        [
            (number, epoch, body[at : at + ROW_BYTES], body[at + ROW_BYTES : at + step])
            for at in range(0, len(body), step)
        ],
    )


def _one(body: bytes) -> int:
    return int(decode_numbers(body)[0])


_WRITERS: dict[str, Callable[[sqlite3.Connection, TransferPiece], None]] = {
    "record": _put_record,
    "dropped": _put_dropped,
    "fresh": _put_fresh,
    "note": _put_note,
    "spread": _put_spread,
    "tally": _put_tally,
    "rows": _put_rows,
}
