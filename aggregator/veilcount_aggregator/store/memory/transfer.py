"""Pieces of a store in memory, see `transfer_format`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from ..interface import Cell, TransferPiece
from ..series_reports import ROW_BYTES, ServiceCounter
from ..transfer_format import (
    batch_piece,
    decode_numbers,
    histogram_piece,
    join_key,
    numbers_piece,
    parse_record,
    parse_tally,
    tally_piece,
    token_pieces,
    token_rows,
)
from .content import SeriesContent, StoreContent


def pieces(content: StoreContent) -> Iterator[TransferPiece]:
    """Yield everything, in a fixed order."""
    for kind, records in sorted(content.records.items()):
        for key, value in sorted(records.items()):
            yield TransferPiece("record", join_key(kind, key), value)
    for counter, times in sorted((+content.service_counters).items()):
        yield numbers_piece("service_counter", [times], *counter)
    for fingerprint, stored in sorted(content.series.items()):
        yield from _series_pieces(fingerprint, stored)


def _series_pieces(fingerprint: str, stored: SeriesContent) -> Iterator[TransferPiece]:
    if stored.dropped:
        yield numbers_piece("dropped", [stored.dropped], fingerprint)
    for period, rows in sorted(stored.new_rows.items()):
        yield numbers_piece("new_rows", [rows], fingerprint, period)
    for epoch, spent in sorted(stored.spent_rows.items()):
        yield histogram_piece(spent, fingerprint, epoch)
    for cell, reports in sorted(stored.reports.items()):
        yield tally_piece(reports, stored.tallies[cell], fingerprint, cell)
    ledger = [
        (epoch, len(spent), row[0], row + spent)
        for epoch, rows in stored.rows.items()
        for row, spent in rows.items()
        if epoch >= stored.dropped
    ]
    for (epoch, width, first), group in groupby(sorted(ledger), lambda entry: entry[:3]):
        key = join_key(fingerprint, epoch, width, f"{first:02x}")
        yield TransferPiece("rows", key, b"".join(body for *_, body in group))
    for key, entry in sorted(stored.batches.items()):
        yield batch_piece(fingerprint, key, entry)
    for period, tokens in sorted(stored.tokens.items()):
        yield from token_pieces(fingerprint, period, tokens)


def absorb(content: StoreContent, pieces: Iterable[TransferPiece]) -> set[str]:
    """Write pieces in place of what is there; return the kinds of the records among them."""
    kinds = set()
    for piece in pieces:
        if piece.kind == "record":
            kind, key, _ = parse_record(piece)
            content.records[kind][key] = piece.body
            kinds.add(kind)
        elif piece.kind == "service_counter":
            what, fingerprint, period, word = piece.key.split("/", 3)
            counter = ServiceCounter(what, fingerprint, int(period), word)
            content.service_counters[counter] = int(decode_numbers(piece.body)[0])
        else:
            fingerprint, *key_parts = piece.key.split("/")
            _write(content.series[fingerprint], piece, key_parts)
    return kinds


def _write(stored: SeriesContent, piece: TransferPiece, key: list[str]) -> None:
    if piece.kind == "rows":
        _write_rows(stored, piece.body, key)
        return
    if piece.kind == "batch":
        stored.batches[key[0]] = piece.body
        return
    if piece.kind == "tokens":
        stored.tokens[int(key[0])].update(token_rows(piece.body))
        return
    numbers = decode_numbers(piece.body)
    match piece.kind:
        case "dropped":
            stored.dropped = stored.final = int(numbers[0])
            stored.drops = {}
        case "new_rows":
            stored.new_rows[int(key[0])] = int(numbers[0])
        case "spent_rows":
            stored.spent_rows[int(key[0])] = numbers
        case "tally" | "hashes":
            cell = Cell(int(key[0]), int(key[1]))
            stored.reports[cell], stored.tallies[cell] = parse_tally(piece)


def _write_rows(stored: SeriesContent, body: bytes, key: list[str]) -> None:
    epoch, step, first = int(key[0]), ROW_BYTES + int(key[1]), int(key[2], 16)
    other_rows = {row: spent for row, spent in stored.rows[epoch].items() if row[0] != first}
    entries = (body[at : at + step] for at in range(0, len(body), step))
    stored.rows[epoch] = other_rows | {entry[:ROW_BYTES]: entry[ROW_BYTES:] for entry in entries}
