"""The store on Redis; each atomic step is a function of the Lua library (`lua/`).

Keys of a shard, each after its base `veilcount:{..}`:

    (nothing)                 the store whose shard it is
    :read_only                there while the store takes no changes
    :epochs:SERIES            each epoch's ledger: number, rows, buckets, bitmap width; `dropped`
    :drops:SERIES             when the latest drops were made; `deleted`: the first epoch with all
                              its rows
    :NUMBER:BUCKET            rows of a ledger, and their bitmaps
    :spent:SERIES:EPOCH       how many rows have spent 1, 2, .. slots
    :new:SERIES               each period's new rows
    :hourly:SERIES:HOUR       new rows by source, for quotas; gone two hours later
    :reports:SERIES           each cell's reports
    :tally:SERIES:CELL        the counters of a small tally
    :tally:SERIES:CELL:PAGE   some counters of a large tally: a packed hash of those that are not
                              zero, or a string of all
    :pages:SERIES:CELL        the pages of a large tally, two bits each: none, hash, string
    :hashes:SERIES:CELL       those of a tally of hashes, a bit each: all of them are hashes
    :batches:SERIES           entries of shufflers' batches, in the home of the series alone
    :tokens:SERIES:PERIOD     the tokens that they have spent
    :token_periods:SERIES     of which periods there are any
    :counts                   service counters
    :height                   the height, the life that counts, when a loss was last accepted, and
                              the height at which each other life ended
    :series, :ledgers, :probe
    :confirmed                written to wait for replicas
and of the records: :identity, :generation, :generations (by kind), :kinds, :records:KIND
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from veilcount_analysis.series.series import Series

from ...errors import StoreError, StoreUnavailable
from ..acknowledged import AcknowledgedHeights, weaknesses
from ..health import Durability, ShardHealth, StoreHealth
from ..interface import BatchChange, Cell, Records, TransferPiece
from ..series_reports import (
    Bytes,
    Codes,
    Counters,
    Flags,
    SeriesReports,
    ServiceCounter,
    ServiceCounts,
)
from ..transfer_format import bitmap_bytes
from . import batch_shard, intake
from .connections import Wait, execute_each
from .durability import DurabilityMonitor
from .durable_writes import DurableWriter, UnconfirmedWriter
from .heights import RedisHeights
from .identity import RECORDS_BASE, StoreIdentity, find_identity, parse_identity
from .lua_library import call, pack
from .memory_limit import counter_limit
from .queries import ShardReader
from .read_only import ShardReadOnlyLock, is_read_only
from .records import RedisRecords, read_copy
from .row_permutation import shard_numbers
from .shard_client import Command, ShardClient
from .shard_health import RedisHealth, WriteProbe
from .transfer import RedisTransfer
from .url import RedisUrl

EPOCHS_AT_ONCE = 1000
BUCKETS_AT_ONCE = 1000  # to be freed: a millisecond


def open_redis(
    url: str, *, make: bool, acknowledged: AcknowledgedHeights | None = None
) -> RedisStore:
    """Open the store at redis://host:port/0 or redis-cluster://host:port,host:port.

    Servers that are away are examined when they come back, and each gets the function library when
    a call finds it missing: opening needs the server of the records and no other.
    """
    servers = ShardClient(RedisUrl.parse(url), lambda _: monitor.suspect())
    monitor = DurabilityMonitor(servers)
    try:
        monitor.start()
        identity = _identity(servers, make=make)
        heights = RedisHeights(servers, identity, acknowledged or AcknowledgedHeights())
        return RedisStore(servers, identity, monitor, heights)
    except StoreError:
        servers.close()
        raise


def _identity(servers: ShardClient, *, make: bool) -> StoreIdentity:
    """Return the identity of the store, from a copy where the records of a cluster are away."""
    try:
        return find_identity(servers, make=make)
    except StoreUnavailable:
        if not servers.address.cluster:
            raise
        _, content = read_copy(servers)
        return parse_identity(servers, content.identity)


class RedisStore(RedisRecords):
    """The store on one server, or on the shards of a cluster, for any number of processes."""

    def __init__(
        self,
        servers: ShardClient,
        identity: StoreIdentity,
        monitor: DurabilityMonitor,
        heights: RedisHeights,
    ) -> None:
        self._heights = heights
        self._durable = DurableWriter(servers, monitor, heights)
        super().__init__(servers, self._durable, identity)
        self._monitor = monitor
        self._reader = ShardReader(servers, identity)
        self._batches = batch_shard.BatchReader(servers, identity)
        self._health = RedisHealth(servers, identity, monitor, heights)
        self._probe = WriteProbe(servers, identity)

    # -- the intake ----------------------------------------------------------------------------

    def commit(self, group: Sequence[SeriesReports], counts: ServiceCounts) -> list[Codes]:
        # Service counters alone are acknowledged to nobody: they are kept wherever they can be.
        servers = self._durable if group else UnconfirmedWriter(self._servers)
        alone = 0 if group else self._servers.first_answering(self.identity.bases)
        return intake.commit(servers, self.identity, group, counts, alone=alone)

    def close_row(self, series: Series, epochs: Sequence[int], row: bytes) -> bool:
        permuted = self.identity.permutation.apply(np.frombuffer(row, np.uint8))
        base = self.identity.bases[int(shard_numbers(permuted.places, self.identity.shards)[0])]
        closed = ((1 << series.bits) - 1).to_bytes(bitmap_bytes(series.bits), "little")
        arguments = (series.fingerprint, permuted.fields.tobytes(), int(permuted.places[0]), closed)
        was_open = False
        for first in range(0, len(epochs), EPOCHS_AT_ONCE):
            some = pack(list(epochs[first : first + EPOCHS_AT_ONCE]))
            command = self.identity.call("close_row", base, *arguments, some)
            was_open |= bool(self._durable.execute_one(command, Wait.COMMIT))
        return was_open

    # -- retention: each server goes by its own clock, not by the caller's `now` ---------------

    def server_times(self) -> list[datetime]:
        requests = [(server, ("TIME",)) for server in self._servers.all()]
        answers = [
            answer for answer in execute_each(requests, Wait.PROBE) if isinstance(answer, list)
        ]
        if not answers:
            raise StoreUnavailable("no server of the store answers TIME")
        return [
            datetime.fromtimestamp(int(seconds) + int(microseconds) / 1e6, UTC)
            for seconds, microseconds in answers
        ]

    def mark_dropped(self, series: Series, epochs: int, due: datetime, now: datetime) -> int:
        return self._greatest("mark_dropped", series.fingerprint, epochs, int(due.timestamp()))

    def finalize_dropped(self, series: Series, kept: timedelta, now: datetime) -> None:
        self._greatest("give_up_dropped", series.fingerprint, int(kept.total_seconds()))

    def delete_rows(self, series: Series) -> bool:
        left, errors = 0, []
        for base in self.identity.bases:
            try:
                left += self._delete_rows(base, series.fingerprint)
            except StoreError as error:  # the other shards' rows go all the same
                errors.append(error)
        if errors:
            raise errors[0]
        return left > 0

    def restore_dropped(self, series: Series) -> int:
        return self._greatest("restore_dropped", series.fingerprint)

    def _greatest(self, name: str, *arguments: str | int) -> int:
        """Call a function in every shard; return the greatest answer.

        A shard that is away keeps none from doing its part; then the call fails, to be repeated.
        """
        calls = [self.identity.call(name, base, *arguments) for base in self.identity.bases]
        return max(int(answer) for answer in self._servers.execute_all(calls))

    def _delete_rows(self, base: bytes, fingerprint: str) -> int:
        """Delete some buckets of each final epoch in one shard; return how many are left."""
        calls = (
            self.identity.call("delete_rows", base, fingerprint, epoch, BUCKETS_AT_ONCE)
            for epoch in self._reader.dropped_epochs_of_shard(base, fingerprint)
        )
        return sum(int(self._servers.execute_one(call)) for call in calls)

    # -- what the analyst reads ----------------------------------------------------------------

    def report_counts(self, series: Series) -> dict[Cell, int]:
        return self._reader.report_counts(series.fingerprint)

    def counters(self, series: Series, cells: Sequence[Cell]) -> Counters:
        if series.counts_hashes:
            return self._reader.hash_counts(series.fingerprint, cells)
        return self._reader.counters(series.fingerprint, cells, series.counters)

    def spend_histograms(self, series: Series) -> dict[int, Counters]:
        return self._reader.spend_histograms(series.fingerprint, series.most)

    def new_pseudonyms(self, series: Series) -> dict[int, int]:
        return self._reader.new_pseudonyms(series.fingerprint)

    def service_counts(self) -> dict[ServiceCounter, int]:
        return self._reader.service_counts()

    def shard_count(self) -> int:
        return self.identity.shards

    def counter_limit(self) -> int | None:
        return counter_limit(self._servers, self.identity)

    # -- batches of shufflers ------------------------------------------------------------------

    def batches(self, series: Series) -> Records:
        return self._batches.batches(series.fingerprint)

    def batch(self, series: Series, key: str) -> bytes | None:
        return self._batches.batch(series.fingerprint, key)

    def spent_tokens(self, series: Series, period: int, rows: Bytes) -> Flags:
        return self._batches.spent_tokens(series.fingerprint, period, rows)

    def change_batch(self, series: Series, change: BatchChange) -> bool:
        home = self._batches.home(series.fingerprint)
        command = batch_shard.change_command(self.identity, home, series, change)
        return bool(self._durable.execute_one(command, Wait.COMMIT))

    def forget_tokens(self, series: Series, period: int) -> None:
        home = self._batches.home(series.fingerprint)
        words = (series.fingerprint, period)
        self._servers.execute_one(self.identity.call("forget_tokens", home, *words))

    # -- moving, and the operator --------------------------------------------------------------

    def set_read_only(self, *, on: bool) -> None:
        bases = (RECORDS_BASE, *self.identity.bases)
        for base in bases if on else reversed(bases):  # the records close first and open last
            self._servers.execute_one(Command(base, call("set_read_only", base, int(on))))

    def export_pieces(self) -> Iterator[TransferPiece]:
        return RedisTransfer(self._servers, self.identity).pieces()

    @contextmanager
    def read_only_shard(self, shard: int) -> Iterator[Iterator[TransferPiece]]:
        """Export what one shard has counted, which is read-only meanwhile."""
        base = self.identity.bases[shard]
        pieces = RedisTransfer(self._servers, replace(self.identity, bases=(base,))).counted()
        if is_read_only(self._servers):
            yield pieces
            return
        lock = ShardReadOnlyLock(self._servers, base)
        with lock.held():
            yield lock.renewing(pieces)

    def export_records(self) -> list[TransferPiece]:
        """Return the records as of one moment."""
        while True:
            generation = self.generation()
            pieces = list(RedisTransfer(self._servers, self.identity).records())
            if generation == self.generation():
                return pieces

    def import_pieces(self, pieces: Sequence[TransferPiece]) -> None:
        bases = [RECORDS_BASE, *self.identity.bases]
        self._durable.admit(bases)
        RedisTransfer(self._servers, self.identity).absorb(pieces)
        self._durable.confirm(bases)

    def losses(self) -> Sequence[str]:
        return self._heights.losses()

    def accept_losses(self, now: datetime) -> None:
        microseconds = int(now.timestamp() * 1e6)
        for base in (*self.identity.bases, RECORDS_BASE):
            words = call("accept", base, self.identity.store, microseconds)
            self._servers.execute_one(Command(base, words))
        self._heights.look()

    def durability(self) -> Durability:
        self._heights.look()
        durability = self._monitor.look()
        return replace(durability, weaknesses=durability.weaknesses + weaknesses(self.losses()))

    def health(self) -> StoreHealth:
        durability = self.durability()
        health = self._health.store()
        return replace(health, weaknesses=durability.weaknesses, trouble=self._probe.trouble())

    def shards(self) -> list[ShardHealth]:
        return [state.health() for state in self._health.shards()]

    def reachable_part(self) -> tuple[RedisStore, bool]:
        bases = self._health.answering()
        identity = replace(self.identity, bases=bases)
        part = RedisStore(self._servers, identity, self._monitor, self._heights)
        return part, len(bases) == self.identity.shards

    def close(self) -> None:
        self._servers.close()
