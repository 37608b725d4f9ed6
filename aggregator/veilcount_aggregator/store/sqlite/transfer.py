"""Export and import of a store's content in SQL: each kind of piece is read and written here.

Pieces of another store replace what is here under their names. Those of several shards are merged:
what each shard has is added, so that a piece that comes twice counts twice. A shard is merged in
one transaction, once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np

from ..interface import Cell, TransferPiece
from ..series_reports import ROW_BYTES
from ..transfer_format import add_padded, decode_numbers, encode_numbers, join_key, trim_zeros
from .database import SqliteDatabase
from .intake import ensure_series
from .records import advance_generation, put_record
from .tallies import SqliteTally

_Series = tuple[int, str, int]  # number, fingerprint, the first epoch that was not dropped


def pieces(file: SqliteDatabase) -> Iterator[TransferPiece]:
    """Return everything, kind by kind. No reading lasts longer than one piece takes."""
    with file.reading() as database:
        small = [
            *_records(database),
            *_dropped(database),
            *_new_rows(database),
            *_service_counters(database),
        ]
        known: list[_Series] = database.execute(
            "select number, fingerprint, dropped from series order by fingerprint"
        ).fetchall()
    yield from small
    for series in known:
        with file.reading() as database:
            histograms = list(_spent_rows(database, series))
        yield from histograms
    for series in known:
        yield from _tallies(file, series)
    for series in known:
        yield from _rows(file, series)


def absorb(database: sqlite3.Connection, pieces: Iterable[TransferPiece]) -> None:
    """Write pieces in place of what is here under their names."""
    kinds = set()
    for piece in pieces:
        if piece.kind == "record":
            kind, key = piece.key.split("/", 1)
            put_record(database, kind, key, piece.body)
            kinds.add(kind)
        else:
            _WRITERS[piece.kind](database, piece, add=False)
    if kinds:
        advance_generation(database, kinds)


def merge(database: sqlite3.Connection, pieces: Iterable[TransferPiece]) -> None:
    """Add one shard's pieces to what is here."""
    for piece in pieces:
        _WRITERS[piece.kind](database, piece, add=True)


# -- reading ---------------------------------------------------------------------------------------


def _records(database: sqlite3.Connection) -> Iterator[TransferPiece]:
    for kind, key, value in database.execute("select * from record order by kind, key"):
        yield TransferPiece("record", join_key(kind, key), value)


def _dropped(database: sqlite3.Connection) -> Iterator[TransferPiece]:
    for fingerprint, dropped in database.execute(
        "select fingerprint, dropped from series where dropped > 0 order by fingerprint"
    ):
        yield TransferPiece("dropped", fingerprint, encode_numbers([dropped]))


def _new_rows(database: sqlite3.Connection) -> Iterator[TransferPiece]:
    for fingerprint, period, rows in database.execute(
        "select fingerprint, period, rows from new_rows join series on series = number"
        " order by fingerprint, period"
    ):
        yield TransferPiece("new_rows", join_key(fingerprint, period), encode_numbers([rows]))


def _service_counters(database: sqlite3.Connection) -> Iterator[TransferPiece]:
    for *words, times in database.execute("select * from service_counter"):
        yield TransferPiece("service_counter", join_key(*words), encode_numbers([times]))


def _spent_rows(database: sqlite3.Connection, series: _Series) -> Iterator[TransferPiece]:
    number, fingerprint, _ = series
    for epoch, rows in database.execute(
        "select epoch, rows from spent_rows where series = ? order by epoch", (number,)
    ):
        yield TransferPiece(
            "spent_rows",
            join_key(fingerprint, epoch),
            encode_numbers(trim_zeros(decode_numbers(rows))),
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


def _write_dropped(database: sqlite3.Connection, piece: TransferPiece, *, add: bool) -> None:
    """Rows of dropped epochs are not transferred: what the source dropped cannot come back."""
    number, _ = ensure_series(database, piece.key)
    epochs = _one(piece.body)
    if add:  # the furthest: a drop that was interrupted counts
        query = "update series set dropped = max(dropped, ?) where number = ?"
    else:
        database.execute("delete from drop_mark where series = ?", (number,))
        query = "update series set dropped = ?1, deleted = ?1 where number = ?2"
    database.execute(query, (epochs, number))


def _write_new_rows(database: sqlite3.Connection, piece: TransferPiece, *, add: bool) -> None:
    fingerprint, period = piece.key.split("/")
    number, _ = ensure_series(database, fingerprint)
    database.execute(
        "insert into new_rows values (?, ?, ?)"
        " on conflict do update set rows = rows * ? + excluded.rows",
        (number, period, _one(piece.body), add),
    )


def _write_service_counter(
    database: sqlite3.Connection, piece: TransferPiece, *, add: bool
) -> None:
    database.execute(
        "insert into service_counter values (?, ?, ?, ?, ?)"
        " on conflict do update set times = times * ? + excluded.times",
        (*piece.key.split("/", 3), _one(piece.body), add),
    )


def _write_spent_rows(database: sqlite3.Connection, piece: TransferPiece, *, add: bool) -> None:
    fingerprint, epoch = piece.key.split("/")
    number, _ = ensure_series(database, fingerprint)
    histogram = decode_numbers(piece.body)
    if add:
        query = "select rows from spent_rows where series = ? and epoch = ?"
        for (body,) in database.execute(query, (number, epoch)).fetchall():
            histogram = add_padded(histogram, decode_numbers(body))
    database.execute(
        "replace into spent_rows values (?, ?, ?)", (number, epoch, encode_numbers(histogram))
    )


def _write_tally(database: sqlite3.Connection, piece: TransferPiece, *, add: bool) -> None:
    fingerprint, period, segment = piece.key.split("/")
    number, _ = ensure_series(database, fingerprint)
    cell = Cell(int(period), int(segment))
    tally, numbers = SqliteTally(database, number, cell), decode_numbers(piece.body)
    if add:
        query = "select n from tally where series = ? and period = ? and segment = ?"
        for n in database.execute(query, (number, *cell)).fetchall():
            numbers = add_padded(numbers, np.concatenate([n, tally.read()]))
    tally.put(int(numbers[0]), numbers[1:])


def _write_rows(database: sqlite3.Connection, piece: TransferPiece, *, add: bool) -> None:
    """Rows of two shards are never the same."""
    fingerprint, epoch, size, first = piece.key.split("/")
    number, _ = ensure_series(database, fingerprint)
    if not add:
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


class _Writer(Protocol):
    def __call__(
        self, database: sqlite3.Connection, piece: TransferPiece, *, add: bool
    ) -> None: ...


_WRITERS: dict[str, _Writer] = {
    "dropped": _write_dropped,
    "new_rows": _write_new_rows,
    "service_counter": _write_service_counter,
    "spent_rows": _write_spent_rows,
    "tally": _write_tally,
    "rows": _write_rows,
}
