"""Export and import of a store's content: each kind of piece is read and written here.

A figure that is the sum of its shards' parts is written to one of them, and taken from the others.
The rows of one epoch are held in memory together while they are read, some 20 bytes each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from veilcount_shared.domain import HASH_BITS

from ...errors import StoreReadOnly
from ..interface import TransferPiece
from ..series_reports import ROW_BYTES, Bytes, Counters
from ..tally_size import PAGE
from ..transfer_format import (
    decode_numbers,
    histogram_piece,
    join_key,
    numbers_piece,
    parse_record,
    parse_tally,
    tally_piece,
)
from .batch_shard import BatchReader, put_batch, put_tokens
from .identity import RECORDS_BASE, StoreIdentity
from .lua_library import call, pack, raw
from .queries import BIG_ENDIAN, ShardReader, figure_key, split, split_hashes
from .read_only import is_read_only
from .records import RedisRecords, pack_records
from .row_permutation import shard_numbers
from .shard_client import Command, ShardClient

BUCKETS_AT_ONCE = 64  # some 2,500 rows: a millisecond of Redis's time
ROWS_AT_ONCE = 1000


class RedisTransfer:
    """Export and import of one store's content."""

    def __init__(self, servers: ShardClient, identity: StoreIdentity) -> None:
        self._servers = servers
        self._identity = identity
        self._reader = ShardReader(servers, identity)
        self._batches = BatchReader(servers, identity)
        self._records = RedisRecords(servers, servers, identity)
        self._writers: dict[str, Callable[[TransferPiece], Iterator[Command]]] = {
            "dropped": self._put_dropped,
            "new_rows": self._put_new_rows,
            "service_counter": self._put_service_counter,
            "spent_rows": self._put_spent_rows,
            "tally": self._put_tally,
            "hashes": self._put_tally,
            "rows": self._put_rows,
            "batch": self._put_batch,
            "tokens": self._put_tokens,
        }

    # -- export -------------------------------------------------------------------------------

    def pieces(self) -> Iterator[TransferPiece]:
        """Return all content, kind by kind."""
        yield from self.records()
        yield from self.counted()

    def counted(self) -> Iterator[TransferPiece]:
        """Return all but the records."""
        known = self._reader.series()
        for kind in (self._dropped, self._new_rows):
            for series in known:
                yield from kind(series)
        for note, times in sorted(self._reader.service_counts().items()):
            yield numbers_piece("service_counter", [times], *note)
        exports: tuple[Callable[[str], Iterator[TransferPiece]], ...] = (
            *(self._spent_rows, self._tallies, self._rows),
            self._batches.pieces,
        )
        for export in exports:
            for series in known:
                yield from export(series)

    def records(self) -> Iterator[TransferPiece]:
        """Return the records."""
        for kind in sorted(self._records.kinds()):
            for record, value in sorted(self._records.records(kind).items()):
                yield TransferPiece("record", join_key(kind, record), value)

    def _dropped(self, series: str) -> Iterator[TransferPiece]:
        dropped = self._reader.dropped(series)
        if dropped:
            yield numbers_piece("dropped", [dropped], series)

    def _new_rows(self, series: str) -> Iterator[TransferPiece]:
        for period, rows in sorted(self._reader.new_pseudonyms(series).items()):
            yield numbers_piece("new_rows", [rows], series, period)

    def _spent_rows(self, series: str) -> Iterator[TransferPiece]:
        for epoch, rows in sorted(self._reader.spend_histograms(series, 0).items()):
            yield histogram_piece(rows, series, epoch)

    def _tallies(self, series: str) -> Iterator[TransferPiece]:
        for cell, reports in sorted(self._reader.report_counts(series).items()):
            hashes = self._reader.hash_counts(series, [cell])
            counters = hashes if hashes.size else self._reader.counters(series, [cell], 0)
            yield tally_piece(reports, counters, series, cell)

    def _rows(self, series: str) -> Iterator[TransferPiece]:
        dropped = self._reader.dropped(series)
        for epoch in self._reader.epochs(series):
            if epoch >= dropped:
                yield from self._rows_of(series, epoch)

    def _rows_of(self, series: str, epoch: int) -> Iterator[TransferPiece]:
        wide, width = self._held(series, epoch)
        rows = self._identity.permutation.invert(wide[:, :ROW_BYTES])
        order = np.lexsort(rows.view(">u4").T[::-1])
        ordered = np.concatenate([rows, wide[:, ROW_BYTES:]], axis=1)[order]
        ends = np.searchsorted(ordered[:, 0], np.arange(257))
        for first in range(256):
            body = ordered[ends[first] : ends[first + 1]]
            if len(body):
                yield TransferPiece(
                    "rows", join_key(series, epoch, width, f"{first:02x}"), body.tobytes()
                )

    def _held(self, series: str, epoch: int) -> tuple[Bytes, int]:
        """Return all rows of an epoch as they are kept, each with its bitmap, and its width."""
        parts, width = [b""], 0
        for base in self._identity.bases:
            state = self._ask(base, "HGET", figure_key(base, "epochs", series), epoch)
            if state:
                *_, buckets, width = map(int, state.split())
                for first in range(0, buckets, BUCKETS_AT_ONCE):
                    last = first + BUCKETS_AT_ONCE - 1
                    parts.append(
                        self._ask(base, *call("read_rows", base, series, epoch, first, last))
                    )
        bitmap = np.frombuffer(b"".join(parts), np.uint8)
        return bitmap.reshape(-1, ROW_BYTES + width), width

    # -- import -------------------------------------------------------------------------------

    def absorb(self, pieces: Sequence[TransferPiece]) -> None:
        """Write pieces in place of what is there; rows are only added.

        All are sent before the first answer is read: most are a handful of rows, and a way to the
        server and back for each would be nearly all of a copy's time.
        """
        if is_read_only(self._servers):
            raise StoreReadOnly("the store is read-only: nothing is copied into it")
        records = [parse_record(piece) for piece in pieces if piece.kind == "record"]
        if records:
            packed = pack_records(records)
            self._servers.execute_one(self._identity.call("import_records", RECORDS_BASE, packed))
        counted_pieces = [piece for piece in pieces if piece.kind != "record"]
        self._servers.execute_all(
            [command for one in counted_pieces for command in self._writers[one.kind](one)]
        )

    def _put_dropped(self, piece: TransferPiece) -> Iterator[Command]:
        """Rows of dropped epochs are not carried: what the source had dropped cannot come back."""
        (epochs,) = decode_numbers(piece.body).tolist()
        fields = (("epochs", ("dropped", epochs)), ("drops", ("deleted", epochs)))
        for kind, (field, number) in fields:
            for base in self._identity.bases:
                yield Command(base, ("HSET", figure_key(base, kind, piece.key), field, number))
        yield from self._know(piece.key)

    def _put_new_rows(self, piece: TransferPiece) -> Iterator[Command]:
        """Divide them evenly, as devices would: each shard has its share of the limit."""
        series, period = piece.key.split("/")
        (rows,) = decode_numbers(piece.body).tolist()
        count = self._identity.shards
        for shard, base in enumerate(self._identity.bases):
            share = rows * (shard + 1) // count - rows * shard // count
            yield Command(base, ("HSET", figure_key(base, "new", series), period, share))
        yield from self._know(series)

    def _put_service_counter(self, piece: TransferPiece) -> Iterator[Command]:
        (times,) = decode_numbers(piece.body).tolist()
        for base in self._identity.bases:
            counts = figure_key(base, "counts")
            if base == self._home(piece.key):
                yield Command(base, ("HSET", counts, piece.key, times))
            else:
                yield Command(base, ("HDEL", counts, piece.key))

    def _put_spent_rows(self, piece: TransferPiece) -> Iterator[Command]:
        series, epoch = piece.key.split("/")
        spent_bytes = decode_numbers(piece.body).astype(BIG_ENDIAN).tobytes()
        for base in self._identity.bases:
            spent = figure_key(base, "spent", series, epoch)
            at_home = base == self._home(piece.key)
            yield Command(base, ("SET", spent, spent_bytes) if at_home else ("DEL", spent))
            yield Command(base, ("HSETNX", figure_key(base, "epochs", series), epoch, ""))
        yield from self._know(series)

    def _put_tally(self, piece: TransferPiece) -> Iterator[Command]:
        series, cell = piece.key.split("/", 1)
        home = self._home(piece.key)
        for base in self._identity.bases:
            arguments = pack(self._tally(*parse_tally(piece)) if base == home else NO_TALLY)
            yield self._identity.call("import_tally", base, series, cell, arguments)

    def _tally(self, reports: int, counters: Counters) -> list[Any]:
        """Return a tally as `import_tally` takes it."""
        is_hashes = counters.ndim > 1
        if not is_hashes and len(counters) <= PAGE:
            return [reports, 0, raw(counters.astype(BIG_ENDIAN).tobytes()), []]
        if is_hashes:
            size, pages = 1 << HASH_BITS, split_hashes(counters, self._identity.permutation)
        else:
            size, pages = len(counters), split(counters)
        arguments = [
            [number, raw(value) if isinstance(value, bytes) else value] for number, value in pages
        ]
        return [reports, size, raw(b""), arguments]

    def _put_rows(self, piece: TransferPiece) -> Iterator[Command]:
        series, epoch, width, _ = piece.key.split("/")
        step = ROW_BYTES + int(width)
        wide = np.frombuffer(piece.body, np.uint8).reshape(-1, step)
        names = self._identity.permutation.apply(wide[:, :ROW_BYTES])
        homes = shard_numbers(names.places, self._identity.shards)
        for shard, base in enumerate(self._identity.bases):
            here = np.flatnonzero(homes == shard)
            for first in range(0, len(here), ROWS_AT_ONCE):
                some = here[first : first + ROWS_AT_ONCE]
                bitmaps = [raw(row.tobytes().rstrip(b"\0")) for row in wide[some, ROW_BYTES:]]
                fields, places = raw(names.fields[some].tobytes()), names.places[some].tolist()
                rows = pack([fields, places, bitmaps])
                yield self._identity.call("import_rows", base, series, epoch, width, rows)

    def _put_batch(self, piece: TransferPiece) -> Iterator[Command]:
        fingerprint, _ = piece.key.split("/")
        yield put_batch(self._batches.home(fingerprint), piece)
        yield from self._know(fingerprint)

    def _put_tokens(self, piece: TransferPiece) -> Iterator[Command]:
        fingerprint, *_ = piece.key.split("/")
        yield from put_tokens(self._batches.home(fingerprint), piece)
        yield from self._know(fingerprint)

    def _home(self, of: str) -> bytes:
        return self._identity.bases[crc32(of.encode()) % self._identity.shards]

    def _know(self, series: str) -> Iterator[Command]:
        for base in self._identity.bases:
            yield Command(base, ("SADD", figure_key(base, "series"), series))

    def _ask(self, base: bytes, *words: bytes | str | int) -> Any:
        return self._servers.execute_one(Command(base, words))


#: reports, counters (of hashes 2^40), the string of a small tally, the pages of a large one
NO_TALLY = [0, 0, raw(b""), []]
