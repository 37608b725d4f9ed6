"""Batches of shufflers on Redis: all of a series is in one shard, its home."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from zlib import crc32

import numpy as np

from veilcount_analysis.series.series import Series

from ..interface import BatchChange, Records, TransferPiece
from ..series_reports import Bytes, Flags
from ..transfer_format import batch_piece, join_key, token_pieces, token_rows
from .connections import pairs
from .identity import StoreIdentity
from .lua_library import pack, raw
from .queries import figure_key
from .shard_client import Command, ShardClient

TOKENS_AT_ONCE = 1000


class BatchReader:
    """Entries and spent tokens; they are looked for in every shard that a reader has."""

    def __init__(self, servers: ShardClient, identity: StoreIdentity) -> None:
        self._servers = servers
        self._identity = identity

    def home(self, fingerprint: str) -> bytes:
        """Return the base of a series' shard, for good."""
        return self._identity.bases[crc32(fingerprint.encode()) % self._identity.shards]

    def batches(self, fingerprint: str) -> Records:
        """Return all entries by their keys."""
        commands = [
            Command(base, ("HGETALL", figure_key(base, "batches", fingerprint)))
            for base in self._identity.bases
        ]
        return {
            key.decode(): entry
            for answer in self._servers.execute_all(commands)
            for key, entry in pairs(answer).items()
        }

    def batch(self, fingerprint: str, key: str) -> bytes | None:
        """Return one entry."""
        base = self.home(fingerprint)
        words = ("HGET", figure_key(base, "batches", fingerprint), key)
        entry: bytes | None = self._servers.execute_one(Command(base, words))
        return entry

    def spent_tokens(self, fingerprint: str, period: int, rows: Bytes) -> Flags:
        """Return which tokens are spent."""
        base, spent = self.home(fingerprint), [np.zeros(0, np.bool_)]
        tokens = figure_key(base, "tokens", fingerprint, str(period))
        for first in range(0, len(rows), TOKENS_AT_ONCE):
            some = [row.tobytes() for row in rows[first : first + TOKENS_AT_ONCE]]
            answer = self._servers.execute_one(Command(base, ("SMISMEMBER", tokens, *some)))
            spent.append(np.array(answer, np.bool_))
        return np.concatenate(spent)

    def pieces(self, fingerprint: str) -> Iterator[TransferPiece]:
        """Yield what there is of a series, for another store."""
        for key, entry in sorted(self.batches(fingerprint).items()):
            yield batch_piece(fingerprint, key, entry)
        for base in self._identity.bases:
            name = figure_key(base, "token_periods", fingerprint)
            periods = self._servers.execute_one(Command(base, ("SMEMBERS", name)))
            for period in sorted(map(int, periods)):
                yield from token_pieces(
                    fingerprint, period, self._tokens(base, fingerprint, period)
                )

    def _tokens(self, base: bytes, fingerprint: str, period: int) -> set[bytes]:
        """Return a period's spent tokens; a scan returns some twice, and holds nobody up."""
        tokens, rows, cursor = figure_key(base, "tokens", fingerprint, str(period)), set(), b"0"
        while True:
            words = ("SSCAN", tokens, cursor, "COUNT", TOKENS_AT_ONCE)
            cursor, some = self._servers.execute_one(Command(base, words))
            rows.update(some)
            if int(cursor) == 0:
                return rows


def change_command(
    identity: StoreIdentity, home: bytes, series: Series, change: BatchChange
) -> Command:
    """Return the call that makes a change."""
    arguments = [
        series.fingerprint,
        change.key,
        change.period,
        False if change.entry is None else raw(change.entry),
        False if change.expected is None else raw(change.expected),
        [raw(row.tobytes()) for row in change.spent],
        _tallies(series, change),
    ]
    return identity.call("change_batch", home, pack(arguments))


def put_batch(home: bytes, piece: TransferPiece) -> Command:
    """Return the command that writes the entry of a piece."""
    fingerprint, key = piece.key.split("/")
    return Command(home, ("HSET", figure_key(home, "batches", fingerprint), key, piece.body))


def put_tokens(home: bytes, piece: TransferPiece) -> Iterator[Command]:
    """Yield the commands that write the tokens of a piece."""
    fingerprint, period, _ = piece.key.split("/")
    rows, tokens = token_rows(piece.body), figure_key(home, "tokens", fingerprint, period)
    yield Command(home, ("SADD", figure_key(home, "token_periods", fingerprint), period))
    for first in range(0, len(rows), TOKENS_AT_ONCE):
        yield Command(home, ("SADD", tokens, *rows[first : first + TOKENS_AT_ONCE]))


def _tallies(series: Series, change: BatchChange) -> Sequence[list[object]]:
    if change.counters is None:
        return []
    places = np.flatnonzero(change.counters)
    counts = change.counters[places].tolist()
    cell = join_key(change.period, 0)
    return [[series.fingerprint, series.counters, cell, change.reports, places.tolist(), counts]]
