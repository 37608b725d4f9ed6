"""Export and import of a store's content in SQL: each kind of piece is read and written here.

Pieces of another store replace what is here under their names. Those of several shards are merged:
what each shard has is added, so that a piece that comes twice counts twice. A shard is merged in
one transaction, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..interface import Cell, TransferPiece
from ..series_reports import ROW_BYTES
from ..transfer_format import (
    add_padded,
    batch_piece,
    decode_numbers,
    encode_numbers,
    histogram_piece,
    join_key,
    numbers_piece,
    parse_record,
    parse_tally,
    tally_piece,
    token_pieces,
    token_rows,
)
from .batches import put_entry, spend_tokens
from .records import advance_generation, put_record
from .remembered import ensure_series
from .sql_connection import SqlConnection, SqlReader
from .tallies import SqlTally

_Series = tuple[int, str, int]  # number, fingerprint, the first epoch that was not dropped


def pieces(source: SqlReader) -> Iterator[TransferPiece]:
    """Return everything, kind by kind. No reading lasts longer than one piece takes."""
    with source.reading() as database:
        small = [*_records(database), *_numbers(database)]
        series_rows: list[_Series] = database.execute(
            "select number, fingerprint, dropped from series order by fingerprint"
        ).fetchall()
    yield from small
    for series in series_rows:
        with source.reading() as database:
            histograms = list(_spent_rows(database, series))
        yield from histograms
    for series in series_rows:
        yield from _tallies(source, series)
    for series in series_rows:
        yield from _rows(source, series)
    for series in series_rows:
        with source.reading() as database:
            entries = list(_batches(database, series))
        yield from entries
        yield from _tokens(source, series)


def absorb(database: SqlConnection, pieces: Iterable[TransferPiece]) -> None:
    """Write pieces in place of what is here under their names."""
    kinds = set()
    for piece in pieces:
        if piece.kind == "record":
            record = parse_record(piece)
            put_record(database, record.kind, record.key, piece.body)
            kinds.add(record.kind)
        else:
            _WRITERS[piece.kind](database, piece, add=False)
    if kinds:
        advance_generation(database, kinds)


def merge(database: SqlConnection, pieces: Iterable[TransferPiece]) -> None:
    """Add one shard's pieces to what is here."""
    for piece in pieces:
        _WRITERS[piece.kind](database, piece, add=True)


# -- reading ---------------------------------------------------------------------------------------


def _records(database: SqlConnection) -> Iterator[TransferPiece]:
    for kind, key, value in database.execute("select * from record order by kind, key"):
        yield TransferPiece("record", join_key(kind, key), value)


#: pieces of one number: its key, and the number
_NUMBERS = {
    "dropped": "select fingerprint, dropped from series where dropped > 0 order by fingerprint",
    "new_rows": "select fingerprint, period, rows from new_rows join series on series = number"
    " order by fingerprint, period",
    "service_counter": "select * from service_counter",
}


def _numbers(database: SqlConnection) -> Iterator[TransferPiece]:
    for kind, query in _NUMBERS.items():
        for *key, number in database.execute(query):
            yield numbers_piece(kind, [number], *key)


def _spent_rows(database: SqlConnection, series: _Series) -> Iterator[TransferPiece]:
    number, fingerprint, _ = series
    for epoch, rows in database.execute(
        "select epoch, rows from spent_rows where series = ? order by epoch", (number,)
    ):
        yield histogram_piece(decode_numbers(rows), fingerprint, epoch)


def _tallies(source: SqlReader, series: _Series) -> Iterator[TransferPiece]:
    number, fingerprint, _ = series
    with source.reading() as database:
        cells = database.execute(
            "select period, segment, n from tally where series = ? order by period, segment",
            (number,),
        ).fetchall()
    for *place, n in cells:
        cell = Cell(*place)
        with source.reading() as database:
            counters = SqlTally(database, number, cell).read()
        yield tally_piece(n, counters, fingerprint, cell)


def _rows(source: SqlReader, series: _Series) -> Iterator[TransferPiece]:
    number, fingerprint, epoch = series
    after = b""
    while True:
        with source.reading() as database:
            next_row = database.execute(_NEXT, (number, epoch, after)).fetchone()
            if next_row is None:
                return
            epoch, row, size = next_row
            least, after = _between(row[0])
            rows = database.execute(_BUCKET, (number, epoch, least, after)).fetchall()
        body = b"".join(part for row in rows for part in row)
        yield TransferPiece("rows", join_key(fingerprint, epoch, size, f"{least[0]:02x}"), body)


def _batches(database: SqlConnection, series: _Series) -> Iterator[TransferPiece]:
    number, fingerprint, _ = series
    query = "select key, entry from batch where series = ? order by key"
    for key, entry in database.execute(query, (number,)):
        yield batch_piece(fingerprint, key, entry)


def _tokens(source: SqlReader, series: _Series) -> Iterator[TransferPiece]:
    number, fingerprint, _ = series
    query = "select distinct period from spent_token where series = ? order by period"
    rows = "select row from spent_token where series = ? and period = ? and row between ? and ?"
    with source.reading() as database:
        periods = [period for (period,) in database.execute(query, (number,))]
    for period in periods:
        for first in range(256):
            with source.reading() as database:
                tokens = database.execute(rows, (number, period, *_between(first))).fetchall()
            yield from token_pieces(fingerprint, period, (row for (row,) in tokens))


_NEXT = (
    "select epoch, row, length(spent) from ledger where series = ? and (epoch, row) > (?, ?)"
    " order by epoch, row limit 1"
)
_BUCKET = (
    "select row, spent from ledger where series = ? and epoch = ? and row between ? and ?"
    " order by row"
)


def _between(first: int) -> tuple[bytes, bytes]:
    """Return the least and the greatest row with this first byte."""
    byte = bytes([first])
    return byte + bytes(ROW_BYTES - 1), byte + b"\xff" * (ROW_BYTES - 1)


# -- writing ---------------------------------------------------------------------------------------


def _write_dropped(database: SqlConnection, piece: TransferPiece, *, add: bool) -> None:
    """Rows of dropped epochs are not transferred: what the source dropped cannot come back."""
    number, _ = ensure_series(database, piece.key)
    epochs = _one(piece.body)
    if add:  # the furthest: a drop that was interrupted counts
        query = "update series set dropped = max(dropped, :epochs) where number = :number"
    else:
        database.execute("delete from drop_mark where series = ?", (number,))
        query = "update series set dropped = :epochs, deleted = :epochs where number = :number"
    database.execute(query, {"epochs": epochs, "number": number})


def _write_new_rows(database: SqlConnection, piece: TransferPiece, *, add: bool) -> None:
    fingerprint, period = piece.key.split("/")
    number, _ = ensure_series(database, fingerprint)
    database.execute(
        "insert into new_rows values (?, ?, ?)"
        " on conflict do update set rows = rows * ? + excluded.rows",
        (number, period, _one(piece.body), add),
    )


def _write_service_counter(database: SqlConnection, piece: TransferPiece, *, add: bool) -> None:
    database.execute(
        "insert into service_counter values (?, ?, ?, ?, ?)"
        " on conflict do update set times = times * ? + excluded.times",
        (*piece.key.split("/", 3), _one(piece.body), add),
    )


def _write_spent_rows(database: SqlConnection, piece: TransferPiece, *, add: bool) -> None:
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


def _write_tally(database: SqlConnection, piece: TransferPiece, *, add: bool) -> None:
    fingerprint, period, segment = piece.key.split("/")
    number, _ = ensure_series(database, fingerprint)
    cell = Cell(int(period), int(segment))
    tally, (reports, counters) = SqlTally(database, number, cell), parse_tally(piece)
    if add:
        query = "select n from tally where series = ? and period = ? and segment = ?"
        for (n,) in database.execute(query, (number, *cell)).fetchall():
            reports, counters = reports + n, add_padded(tally.read(), counters)
    tally.put(reports, counters)


def _write_rows(database: SqlConnection, piece: TransferPiece, *, add: bool) -> None:
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


def _write_batch(database: SqlConnection, piece: TransferPiece, *, add: bool) -> None:  # noqa: ARG001 - one shard has it
    fingerprint, key = piece.key.split("/")
    number, _ = ensure_series(database, fingerprint)
    put_entry(database, number, key, piece.body)


def _write_tokens(database: SqlConnection, piece: TransferPiece, *, add: bool) -> None:
    fingerprint, period, first = piece.key.split("/")
    number, _ = ensure_series(database, fingerprint)
    if not add:
        database.execute(
            "delete from spent_token where series = ? and period = ? and row between ? and ?",
            (number, int(period), *_between(int(first, 16))),
        )
    spend_tokens(database, number, int(period), token_rows(piece.body))


def _one(body: bytes) -> int:
    return int(decode_numbers(body)[0])


_WRITERS = {
    "dropped": _write_dropped,
    "new_rows": _write_new_rows,
    "service_counter": _write_service_counter,
    "spent_rows": _write_spent_rows,
    "tally": _write_tally,
    "hashes": _write_tally,
    "rows": _write_rows,
    "batch": _write_batch,
    "tokens": _write_tokens,
}
