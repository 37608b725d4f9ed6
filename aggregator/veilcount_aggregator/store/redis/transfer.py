"""A store's content on its way to another: each kind of piece is read and written here.

A figure that is the sum of its shards' parts is written to one of them, and taken from the others.
The rows of one epoch are held in memory together while they are read, some 20 bytes each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from ...errors import StoreReadOnly
from ..interface import ROW_BYTES, Bytes, Counters, Record, TransferPiece
from ..memory_limit import PAGE
from ..transfer_format import decode_numbers, encode_numbers, join_key
from . import records as shelf
from .connections import Words
from .identity import RECORDS_BASE, StoreIdentity
from .lua_library import call, pack, raw
from .queries import ShardReader, figure_key
from .row_permutation import shard_numbers
from .shard_client import Command, ShardClient
from .tally_pages import BIG_ENDIAN, split

BUCKETS_AT_ONCE = 64  # some 2,500 rows: a millisecond of Redis's time
ROWS_AT_ONCE = 1000


class RedisTransfer:
    """The way in and the way out of one store."""

    def __init__(self, servers: ShardClient, root: StoreIdentity) -> None:
        """Move what these servers have."""
        self._servers = servers
        self._root = root
        self._reader = ShardReader(servers, root)
        self._writers: dict[str, Callable[[TransferPiece], Iterator[Command]]] = {
            "dropped": self._put_dropped,
            "fresh": self._put_fresh,
            "note": self._put_note,
            "spread": self._put_spread,
            "tally": self._put_tally,
            "rows": self._put_rows,
        }

    # -- the way out ---------------------------------------------------------------------------

    def pieces(self) -> Iterator[TransferPiece]:
        """Return everything, kind by kind."""
        yield from self.records()
        yield from self.counted()

    def counted(self) -> Iterator[TransferPiece]:
        """Return all but the records."""
        known = self._reader.series()
        for kind in (self._dropped, self._fresh):
            for series in known:
                yield from kind(series)
        for note, times in sorted(self._reader.noted().items()):
            yield TransferPiece("note", join_key(*note), encode_numbers([times]))
        for kind in (self._spread, self._tallies, self._rows):
            for series in known:
                yield from kind(series)

    def records(self) -> Iterator[TransferPiece]:
        """Return the records."""
        for kind in sorted(shelf.generations(self._servers)):
            for record, value in sorted(shelf.records(self._servers, kind).items()):
                yield TransferPiece("record", join_key(kind, record), value)

    def _dropped(self, series: str) -> Iterator[TransferPiece]:
        dropped = self._reader.dropped(series)
        if dropped:
            yield TransferPiece("dropped", series, encode_numbers([dropped]))

    def _fresh(self, series: str) -> Iterator[TransferPiece]:
        for period, rows in sorted(self._reader.fresh(series).items()):
            yield TransferPiece("fresh", join_key(series, period), encode_numbers([rows]))

    def _spread(self, series: str) -> Iterator[TransferPiece]:
        for epoch, rows in sorted(self._reader.spread(series, 0).items()):
            yield TransferPiece("spread", join_key(series, epoch), encode_numbers(_used(rows)))

    def _tallies(self, series: str) -> Iterator[TransferPiece]:
        for cell, reports in sorted(self._reader.sizes(series).items()):
            counters = self._reader.counters(series, [cell], 0)
            body = encode_numbers(_used(np.concatenate([[reports], counters])))
            yield TransferPiece("tally", join_key(series, *cell), body)

    def _rows(self, series: str) -> Iterator[TransferPiece]:
        dropped = self._reader.dropped(series)
        for epoch in self._reader.epochs(series):
            if epoch >= dropped:
                yield from self._rows_of(series, epoch)

    def _rows_of(self, series: str, epoch: int) -> Iterator[TransferPiece]:
        wide, width = self._held(series, epoch)
        rows = self._root.scatter.rows(wide[:, :ROW_BYTES])
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
        found, width = [b""], 0
        for base in self._root.bases:
            state = self._ask(base, "HGET", figure_key(base, "epochs", series), epoch)
            if state:
                *_, buckets, width = map(int, state.split())
                for first in range(0, buckets, BUCKETS_AT_ONCE):
                    last = first + BUCKETS_AT_ONCE - 1
                    found.append(self._ask(base, *call("rows", base, series, epoch, first, last)))
        held = np.frombuffer(b"".join(found), np.uint8)
        return held.reshape(-1, ROW_BYTES + width), width

    # -- the way in ----------------------------------------------------------------------------

    def absorb(self, pieces: Sequence[TransferPiece]) -> None:
        """Write pieces in place of what stands there; rows are only ever added to.

        All are sent before the first answer is read: most are a handful of rows, and a way to the
        server and back for each would be nearly all of a copy's time.
        """
        if shelf.fenced(self._servers):
            raise StoreReadOnly("the store is fenced: nothing is copied into it")
        records = [piece for piece in pieces if piece.kind == "record"]
        if records:
            given = [_record(piece) for piece in records]
            self._ask(
                RECORDS_BASE, *call("shelve", RECORDS_BASE, self._root.store, shelf.packed(given))
            )
        others = [piece for piece in pieces if piece.kind != "record"]
        self._servers.ask([each for one in others for each in self._writers[one.kind](one)])

    def _put_dropped(self, piece: TransferPiece) -> Iterator[Command]:
        """Rows of dropped epochs are not carried: what the source had dropped cannot come back."""
        (epochs,) = decode_numbers(piece.body).tolist()
        fields = (("epochs", ("dropped", epochs)), ("drops", ("swept", epochs)))
        for kind, (field, number) in fields:
            for base in self._root.bases:
                yield Command(base, ("HSET", figure_key(base, kind, piece.key), field, number))
        yield from self._know(piece.key)

    def _put_fresh(self, piece: TransferPiece) -> Iterator[Command]:
        """Divide them evenly, as devices would: each shard has its share of the room."""
        series, period = piece.key.split("/")
        (rows,) = decode_numbers(piece.body).tolist()
        shard_numbers = self._root.shards
        for shard, base in enumerate(self._root.bases):
            share = rows * (shard + 1) // shard_numbers - rows * shard // shard_numbers
            yield Command(base, ("HSET", figure_key(base, "fresh", series), period, share))
        yield from self._know(series)

    def _put_note(self, piece: TransferPiece) -> Iterator[Command]:
        (times,) = decode_numbers(piece.body).tolist()
        yield from self._put_field(piece.key, ("notes",), piece.key, times)

    def _put_spread(self, piece: TransferPiece) -> Iterator[Command]:
        series, epoch = piece.key.split("/")
        yield from self._put_string(
            piece.key, ("spread", series, epoch), decode_numbers(piece.body)
        )
        yield from self._each(
            lambda base: ("HSETNX", figure_key(base, "epochs", series), epoch, "")
        )
        yield from self._know(series)

    def _put_tally(self, piece: TransferPiece) -> Iterator[Command]:
        series, cell = piece.key.split("/", 1)
        held = decode_numbers(piece.body)
        home = self._home(piece.key)
        for base in self._root.bases:
            given = pack(_tally(int(held[0]), held[1:]) if base == home else NO_TALLY)
            yield Command(base, call("place", base, self._root.store, series, cell, given))

    def _put_rows(self, piece: TransferPiece) -> Iterator[Command]:
        series, epoch, width, _ = piece.key.split("/")
        step = ROW_BYTES + int(width)
        wide = np.frombuffer(piece.body, np.uint8).reshape(-1, step)
        names = self._root.scatter.names(wide[:, :ROW_BYTES])
        homes = shard_numbers(names.places, self._root.shards)
        for shard, base in enumerate(self._root.bases):
            here = np.flatnonzero(homes == shard)
            for first in range(0, len(here), ROWS_AT_ONCE):
                some = here[first : first + ROWS_AT_ONCE]
                bitmaps = [raw(each.tobytes().rstrip(b"\0")) for each in wide[some, ROW_BYTES:]]
                given = [raw(names.fields[some].tobytes()), names.places[some].tolist(), bitmaps]
                words = call("settle", base, self._root.store, series, epoch, width, pack(given))
                yield Command(base, words)

    def _put_field(
        self, home: str, words: tuple[str, ...], field: str, number: int
    ) -> Iterator[Command]:
        def one(base: bytes) -> Words:
            if base == self._home(home):
                return ("HSET", figure_key(base, *words), field, number)
            return ("HDEL", figure_key(base, *words), field)

        return self._each(one)

    def _put_string(self, home: str, words: tuple[str, ...], held: Counters) -> Iterator[Command]:
        def one(base: bytes) -> Words:
            if base == self._home(home):
                return ("SET", figure_key(base, *words), held.astype(BIG_ENDIAN).tobytes())
            return ("DEL", figure_key(base, *words))

        return self._each(one)

    def _home(self, of: str) -> bytes:
        return self._root.bases[crc32(of.encode()) % self._root.shards]

    def _know(self, series: str) -> Iterator[Command]:
        return self._each(lambda base: ("SADD", figure_key(base, "series"), series))

    def _each(self, words: Callable[[bytes], Words]) -> Iterator[Command]:
        return (Command(base, words(base)) for base in self._root.bases)

    def _ask(self, base: bytes, *words: bytes | str | int) -> Any:
        return self._servers.execute_one(Command(base, words))


#: reports, counters, the string of a small tally, the pages of a large one
NO_TALLY = [0, 0, raw(b""), []]


def _tally(reports: int, counters: Counters) -> list[Any]:
    """Return a tally as `place` takes it."""
    if len(counters) <= PAGE:
        return [reports, 0, raw(counters.astype(BIG_ENDIAN).tobytes()), []]
    given = [
        [number, raw(held) if isinstance(held, bytes) else held] for number, held in split(counters)
    ]
    return [reports, len(counters), raw(b""), given]


def _record(piece: TransferPiece) -> Record:
    kind, record = piece.key.split("/", 1)
    return Record(kind, record, piece.body)


def _used(given: Counters) -> Counters:
    """Return numbers without the zeros at their end, which say nothing."""
    places = np.flatnonzero(given)
    return given[: places[-1] + 1 if len(places) else 0]
