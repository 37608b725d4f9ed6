"""The store's contract on Redis; what is done in one step is in the Lua files beside it.

What a shard keeps, each key after its base `veilcount:{..}`:

    (nothing)         whose shard it is            :fence            there while it is fenced
    :epochs:SERIES    each epoch's ledger: its number, rows, buckets, bitmap width; `dropped`
    :drops:SERIES     when the latest drops were made; `swept`: the first epoch with all its rows
    :NUMBER:BUCKET    some rows of a ledger, and their bitmaps
    :spread:SERIES:EPOCH      how many rows have spent 1, 2, .. slots
    :fresh:SERIES             each period's new rows
    :hourly:SERIES:HOUR       new rows by source, for quotas; gone two hours later
    :sizes:SERIES             each cell's reports
    :tally:SERIES:CELL        its counters, of a small tally
    :tally:SERIES:CELL:PAGE   some counters of a large tally: a packed hash of those that are not
                              zero, or a string of all
    :pages:SERIES:CELL        which pages a large tally has, two bits each: none, hash, string
    :memory                   bytes that counters take, by series; `total`
    :notes, :series, :ledgers, :probe
    :confirmed                written to wait for replicas
and the shelf: :root, :generation, :generations (by kind), :records:KIND
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from ...errors import StoreUnavailable
from ...series.series import Series
from ..interface import (
    Cell,
    Codes,
    Counters,
    Durability,
    Record,
    Records,
    SeriesReports,
    ServiceCounter,
    ServiceCounts,
    ShardHealth,
    StoreHealth,
    TransferPiece,
)
from ..memory_limit import MemoryUse
from ..transfer_format import bitmap_bytes
from . import intake, retention
from . import record_copies as replica
from . import records as shelf
from .connections import Wait
from .durability import DurabilityMonitor
from .durable_writes import DurableWriter
from .identity import RECORDS_BASE, StoreIdentity, find_identity, parse_identity
from .lua_library import call, pack
from .memory_limit import RedisMemoryLimits
from .queries import ShardReader
from .row_permutation import shard_numbers
from .shard_client import Command, ShardClient
from .shard_health import answering, read_shard_states, store_health
from .shard_read_only import ShardReadOnlyLock
from .transfer import RedisTransfer
from .url import RedisUrl
from .write_probe import WriteProbe

EPOCHS_AT_ONCE = 1000


def open_redis(url: str, *, make: bool) -> RedisStore:
    """Open the store at redis://host:port/0 or redis-cluster://host:port,host:port.

    Servers that are away are examined when they come back, and each gets the function library when
    a call finds it missing: to open takes the server of the records and no other.
    """
    servers = ShardClient(RedisUrl.of(url), lambda _: monitor.suspect())
    monitor = DurabilityMonitor(servers)
    monitor.start()
    try:
        return RedisStore(servers, find_identity(servers, make=make), monitor)
    except StoreUnavailable:
        if not servers.address.cluster:
            raise
        copy = replica.read(servers)
        return RedisStore(servers, parse_identity(servers, copy.content.root), monitor)


class RedisStore:
    """One server, or the shards of a cluster, for any number of processes."""

    def __init__(
        self, servers: ShardClient, root: StoreIdentity, monitor: DurabilityMonitor
    ) -> None:
        """Take a store that was found."""
        self._servers = servers
        self._monitor = monitor
        self._confirmed = DurableWriter(servers, monitor)
        self.root = root
        self._reader = ShardReader(servers, root)
        self._probe = WriteProbe(servers, root)
        self._limits = RedisMemoryLimits(servers, root)

    # -- the intake ----------------------------------------------------------------------------

    def commit(self, group: Sequence[SeriesReports], notes: ServiceCounts) -> list[Codes]:
        """Judge and count a group, each shard's part in one step.

        Service counters alone are acknowledged to nobody: they are kept wherever they can be.
        """
        asked = self._confirmed if group else self._servers
        return intake.commit(asked, self.root, self._limits, group, notes)

    def lane(self, group: Sequence[SeriesReports]) -> int:
        """Return the first shard of the server that has a group's rows; a body has one row.

        Not the shard: what a server gets in one go it writes to its disk in one go, and groups that
        are divided by shards too are smaller the more shards there are (`./dev bench shards`).
        """
        owners = {owner.host: owner for owner in map(self._servers.owner, self._bases_of(group))}
        if len(owners) > 1:
            return -1
        (owner,) = owners.values()
        owner.breaker.check()
        return self._servers.first_of(owner, self.root.bases)

    def _bases_of(self, group: Sequence[SeriesReports]) -> list[bytes]:
        """Return the shards of a group's rows."""
        if self.root.shards == 1:
            return list(self.root.bases)
        rows = np.concatenate([spends.rows for spends in group])
        found = shard_numbers(self.root.scatter.names(rows).places, self.root.shards)
        return [self.root.bases[shard] for shard in set(found.tolist())]

    def close_row(self, series: Series, epochs: Sequence[int], row: bytes) -> bool:
        """Close a row wherever it stands in these epochs."""
        names = self.root.scatter.names(np.frombuffer(row, np.uint8))
        base = self.root.bases[int(shard_numbers(names.places, self.root.shards)[0])]
        closed = ((1 << series.bits) - 1).to_bytes(bitmap_bytes(series.bits), "little")
        given = (series.fingerprint, names.fields.tobytes(), int(names.places[0]), closed)
        found = False
        for first in range(0, len(epochs), EPOCHS_AT_ONCE):
            some = pack(list(epochs[first : first + EPOCHS_AT_ONCE]))
            words = call("forget", base, self.root.store, *given, some)
            found |= bool(self._confirmed.execute_one(Command(base, words), Wait.COMMIT))
        return found

    # -- retention -----------------------------------------------------------------------------

    def server_times(self) -> list[datetime]:
        """Return the time of each server that answers, or raise: none does."""
        return retention.times(self._servers)

    def mark_dropped(self, series: Series, epochs: int, due: datetime, now: datetime) -> int:  # noqa: ARG002
        """Mark the first epochs as dropped, each server by its own clock."""
        return retention.mark(self._servers, self.root, series.fingerprint, epochs, due)

    def delete_dropped(self, series: Series, kept: timedelta, now: datetime) -> None:  # noqa: ARG002
        """Delete what was dropped so long ago, by each server's clock, some buckets at a time."""
        retention.sweep(self._servers, self.root, series.fingerprint, kept)

    def restore_dropped(self, series: Series) -> int:
        """Take back the drop of all epochs whose rows are still there."""
        return retention.restore(self._servers, self.root, series.fingerprint)

    # -- what the analyst reads ----------------------------------------------------------------

    def report_counts(self, series: Series) -> dict[Cell, int]:
        """Return how many reports each tally holds."""
        return self._reader.sizes(series.fingerprint)

    def counters(self, series: Series, cells: Sequence[Cell]) -> Counters:
        """Return the sum of the tallies of these cells."""
        return self._reader.counters(series.fingerprint, cells, series.counters)

    def spend_histograms(self, series: Series) -> dict[int, Counters]:
        """Return per epoch how many rows have spent 1, 2, .. slots."""
        return self._reader.spread(series.fingerprint, series.most)

    def new_pseudonyms(self, series: Series) -> dict[int, int]:
        """Return how many new rows each period has brought."""
        return self._reader.fresh(series.fingerprint)

    def service_counts(self) -> dict[ServiceCounter, int]:
        """Return everything that was ever noted."""
        return self._reader.noted()

    def memory_use(self) -> MemoryUse:
        """Return how many bytes the counters take, by the account in each shard."""
        return MemoryUse(self._reader.memory(), self._limits.total(), self.root.shards)

    # -- the shelf -----------------------------------------------------------------------------

    def generation(self) -> int:
        """Return the number of changes of the shelf so far."""
        return shelf.generation(self._servers)

    def records(self, kind: str) -> Records:
        """Return all records of a kind, by key."""
        return shelf.records(self._servers, kind)

    def record_keys(self, kind: str) -> frozenset[str]:
        """Return the keys of all records of a kind, without their values."""
        return shelf.record_keys(self._servers, kind)

    def records_at(self, kind: str, keys: Collection[str]) -> Records:
        """Return the records of a kind under these keys."""
        return shelf.records_at(self._servers, kind, keys)

    def record_count(self, kind: str) -> int:
        """Return the number of records of a kind."""
        return shelf.record_count(self._servers, kind)

    def generations(self) -> Mapping[str, int]:
        """Return the generation of the last change of each kind of record."""
        return shelf.generations(self._servers)

    def change_records(self, generation: int, records: Sequence[Record]) -> bool:
        """Write or remove all records, unless somebody else was first."""
        return shelf.change(self._confirmed, self.root, generation, records)

    def replicate(self, kinds: Sequence[str]) -> None:
        """Copy the records of these kinds to every master of a cluster."""
        if not self._servers.address.cluster:
            return
        generation = self.generation()
        records = {kind: self.records(kind) for kind in kinds}
        if self.generation() == generation:  # else the next time
            replica.write(self._servers, self.root, generation, records)

    def replica(self, kind: str) -> tuple[int, Records]:
        """Return the generation of the copy, and its records of a kind."""
        copy = replica.read(self._servers)
        return copy.generation, copy.content.records.get(kind, {})

    def incarnation(self) -> str:
        """Return the name of the process that keeps the records, and of its history."""
        return shelf.incarnation(self._servers)

    # -- moving, and the operator --------------------------------------------------------------

    def set_read_only(self, *, on: bool) -> None:
        """Refuse (or take) what would change the store, in every process."""
        shelf.fence(self._servers, self.root, on=on)

    def export_pieces(self) -> Iterator[TransferPiece]:
        """Return everything, in one order."""
        return RedisTransfer(self._servers, self.root).pieces()

    @contextmanager
    def paused(self, shard: int) -> Iterator[Iterator[TransferPiece]]:
        """Fence one shard while what it counted is read, unless the whole store is fenced."""
        pieces = RedisTransfer(self._servers, self.root.of_some([self.root.bases[shard]])).counted()
        if shelf.fenced(self._servers):
            yield pieces
            return
        fence = ShardReadOnlyLock(self._servers, self.root.bases[shard])
        with fence.held():
            yield fence.renewing(pieces)

    def record_pieces(self) -> list[TransferPiece]:
        """Return the records as of one moment."""
        while True:
            generation = self.generation()
            found = list(RedisTransfer(self._servers, self.root).records())
            if generation == self.generation():
                return found

    def import_pieces(self, pieces: Sequence[TransferPiece]) -> None:
        """Take over pieces of another store."""
        self._confirmed.admit([RECORDS_BASE, *self.root.bases])
        RedisTransfer(self._servers, self.root).absorb(pieces)
        self._confirmed.confirm([RECORDS_BASE, *self.root.bases])

    def durability(self) -> Durability:
        """Examine all servers that answer."""
        return self._monitor.look()

    def health(self) -> StoreHealth:
        """Return how it is, or raise: no shard answers, or it was emptied."""
        self._monitor.look()
        found = store_health(self._servers, self.root, self._monitor)
        return replace(found, trouble=self._probe.trouble())

    def shards(self) -> list[ShardHealth]:
        """Return how each shard is, and the server of the records."""
        return [seen.shard() for seen in read_shard_states(self._servers, self.root, self._monitor)]

    def reachable_part(self) -> tuple[RedisStore, bool]:
        """Return a view of the shards that answer now, and whether these are all."""
        bases = answering(self._servers, self.root)
        some = RedisStore(self._servers, self.root.of_some(bases), self._monitor)
        return some, len(bases) == self.root.shards

    def close(self) -> None:
        """Let go of connections."""
        self._servers.close()
