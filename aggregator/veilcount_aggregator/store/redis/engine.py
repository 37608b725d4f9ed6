"""The store's contract on Redis; what is done in one step is in the Lua files beside it.

What a shard keeps, each key after its base `veilcount:{..}`:

    (nothing)         whose shard it is            :fence            there while it is fenced
    :epochs:SERIES    each epoch's ledger: its number, rows, buckets, bitmap width; `dropped`
    :NUMBER:BUCKET    some rows of a ledger, and their bitmaps
    :spread:SERIES:EPOCH      how many rows have spent 1, 2, .. slots
    :fresh:SERIES             each period's new rows
    :sizes:SERIES             each cell's reports
    :tally:SERIES:CELL        its counters
    :notes, :series, :ledgers
and the shelf: :root, :generation, :kinds, :records:KIND
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from ...errors import StoreUnfit
from ...series import Series
from ..contract import Cell, Codes, Counters, Health, Note, Notes, Piece, Record, Records, Spends
from ..pieces import width
from . import intake, shelf
from .address import Address
from .fitness import examine
from .library import call, pack
from .moving import Mover
from .reading import Reader
from .root import SHELF, Root, find_root
from .scatter import shards
from .servers import Command, Servers

EPOCHS_AT_ONCE = 1000
BUCKETS_AT_ONCE = 1000  # to be freed: a millisecond


def open_redis(url: str, *, make: bool) -> RedisStore:
    """Open the store at redis://host:port/0 or redis-cluster://host:port,host:port."""
    servers = Servers(Address.of(url))
    examine(servers)
    servers.load_library()
    return RedisStore(servers, find_root(servers, make=make))


class RedisStore:
    """One server, or the shards of a cluster, for any number of processes."""

    def __init__(self, servers: Servers, root: Root) -> None:
        """Take a store that was found."""
        self._servers = servers
        self.root = root
        self._reader = Reader(servers, root)

    # -- the intake ----------------------------------------------------------------------------

    def commit(self, group: Sequence[Spends], notes: Notes) -> list[Codes]:
        """Judge and count a group, each shard's part in one step."""
        return intake.commit(self._servers, self.root, group, notes)

    def lane(self, group: Sequence[Spends]) -> int:
        """Return the shard of a group's rows; a device's body has one row, and so one shard."""
        if self.root.shards == 1:
            return 0
        rows = np.concatenate([spends.rows for spends in group])
        found = shards(self.root.scatter.names(rows).places, self.root.shards)
        return int(found[0]) if (found == found[0]).all() else -1

    def forget(self, series: Series, epochs: Sequence[int], row: bytes) -> bool:
        """Close a row wherever it stands in these epochs."""
        names = self.root.scatter.names(np.frombuffer(row, np.uint8))
        base = self.root.bases[int(shards(names.places, self.root.shards)[0])]
        closed = ((1 << series.bits) - 1).to_bytes(width(series.bits), "little")
        given = (series.fingerprint, names.fields.tobytes(), int(names.places[0]), closed)
        found = False
        for first in range(0, len(epochs), EPOCHS_AT_ONCE):
            some = pack(list(epochs[first : first + EPOCHS_AT_ONCE]))
            words = call("forget", base, self.root.store, *given, some)
            found |= bool(self._servers.ask_one(Command(base, words)))
        return found

    def drop(self, series: Series, epochs: int) -> None:
        """Drop the rows of the first epochs: at once for whoever asks, in memory by and by."""
        for base in self.root.bases:
            words = call("drop", base, self.root.store, series.fingerprint, epochs)
            self._servers.ask_one(Command(base, words))
        for base in self.root.bases:
            self._sweep(base, series.fingerprint, epochs)

    # -- what the analyst reads ----------------------------------------------------------------

    def sizes(self, series: Series) -> dict[Cell, int]:
        """Return how many reports each tally holds."""
        return self._reader.sizes(series.fingerprint)

    def counters(self, series: Series, cells: Sequence[Cell]) -> Counters:
        """Return the sum of the tallies of these cells."""
        return self._reader.counters(series.fingerprint, cells, series.counters)

    def spread(self, series: Series) -> dict[int, Counters]:
        """Return per epoch how many rows have spent 1, 2, .. slots."""
        return self._reader.spread(series.fingerprint, series.most)

    def fresh(self, series: Series) -> dict[int, int]:
        """Return how many new rows each period has brought."""
        return self._reader.fresh(series.fingerprint)

    def noted(self) -> dict[Note, int]:
        """Return everything that was ever noted."""
        return self._reader.noted()

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

    def change(self, generation: int, records: Sequence[Record]) -> bool:
        """Write or remove all records, unless somebody else was first."""
        return shelf.change(self._servers, self.root, generation, records)

    # -- moving, and the operator --------------------------------------------------------------

    def fence(self, *, on: bool) -> None:
        """Refuse (or take) what would change the store, in every process."""
        shelf.fence(self._servers, self.root, on=on)

    def pieces(self) -> Iterator[Piece]:
        """Return everything, in one order."""
        return Mover(self._servers, self.root).pieces()

    def absorb(self, pieces: Sequence[Piece]) -> None:
        """Take over pieces of another store."""
        Mover(self._servers, self.root).absorb(pieces)

    def health(self) -> Health:
        """Return how it is, or raise: a policy may have changed, a shard been emptied."""
        durable, why = examine(self._servers)
        bases = (SHELF, *self.root.bases)
        for store in self._servers.ask([Command(base, ("GET", base)) for base in bases]):
            if store != self.root.store:
                raise StoreUnfit("a part of the store is gone: it was emptied or replaced")
        engine = "redis-cluster" if self._servers.address.cluster else "redis"
        return Health(engine, durable, why, shelf.fenced(self._servers))

    def close(self) -> None:
        """Let go of connections."""
        self._servers.close()

    # -- inside --------------------------------------------------------------------------------

    def _sweep(self, base: bytes, fingerprint: str, epochs: int) -> None:
        """Free what a dropped epoch's rows took, some buckets at a time."""
        for epoch in self._reader.held(base, fingerprint):
            words = call("sweep", base, self.root.store, fingerprint, epoch, BUCKETS_AT_ONCE)
            while epoch < epochs and self._servers.ask_one(Command(base, words)):
                pass
