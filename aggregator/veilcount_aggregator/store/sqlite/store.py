"""The store in one SQLite file: how it is opened, and how it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime

from ...errors import StoreError, StoreReadOnly
from ..acknowledged import LACKS_COMMITS, weaknesses
from ..health import Durability, DurabilityState, ShardHealth, StoreHealth
from ..sql.records import is_read_only, probe_write
from ..sql.store import SqlStore
from .connection import SqliteUrl
from .database import SqliteDatabase
from .health import PAGES_FOR_SECONDS, PAGES_SECONDS, PROBE_SECONDS, is_damaged
from .height import SqliteHeight, accept_losses, read_height


def open_sqlite(url: str, *, make: bool) -> SqliteStore:
    """Open the store at sqlite:///relative.db or sqlite:////absolute.db."""
    file = SqliteDatabase(SqliteUrl.parse(url))
    try:
        file.open(make=make)
        return SqliteStore(file)
    except StoreError:
        file.close()
        raise


class SqliteStore(SqlStore):
    """The store in one file, for the processes of one machine."""

    def __init__(self, file: SqliteDatabase) -> None:
        super().__init__()
        self.file = file
        self.height = SqliteHeight(file.place.path)

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        return self.file.reading()

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        return self.file.writing()

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """Return a transaction that changes the store, unless it is read-only or went back."""
        with self.file.writing() as database:
            if is_read_only(database):
                raise StoreReadOnly(
                    "the store is read-only: it was copied, or is being copied, to another"
                )
            height = self.height.raised(database)
            yield database
        self.height.keep(height)

    def moments(self) -> tuple[Hashable, Hashable]:
        return self.file.found, self.file.moment()

    def incarnation(self) -> str:
        """Return the store's id, and when an older file was last accepted as the store.

        Nothing is written to an older file before that: its height is too low.
        """
        with self.file.reading() as database:
            height = read_height(database)
        return f"{height.store}-{height.accepted}"

    def replicate(self, kinds: Sequence[str]) -> bool:
        """Do nothing: there is one file."""
        return True

    def losses(self) -> Sequence[str]:
        with self.file.reading() as database:
            loss = self.height.loss(database)
        return [f"{self.file.place.path}: {loss}"] if loss else []

    def accept_losses(self, now: datetime) -> None:
        with self.file.writing() as database:
            accept_losses(database, now)

    def durability(self) -> Durability:
        """Return what was decided when the file was opened, unless it lacks commits by now.

        Each process calls it every second, so a removed log is put back where nothing is committed.
        """
        self.file.keep_log()
        self.height.sync()
        if losses := self.losses():
            return Durability(DurabilityState.NO, LACKS_COMMITS, weaknesses(losses), blocked=True)
        if self.file.place.durable:
            return Durability(DurabilityState.YES, "WAL, synchronous=FULL")
        return Durability(DurabilityState.NO, "durability=relaxed: synchronous=OFF")

    def health(self) -> StoreHealth:
        """Return how it is, or raise; now and then with a write, and a check of the pages."""
        self._examine()
        return self._read_health()

    def _read_health(self) -> StoreHealth:
        with self.file.reading() as database:
            read_only = is_read_only(database)
        durability, trouble = self.durability(), self.file.condition.trouble
        return StoreHealth(
            "sqlite",
            durability.durable,
            durability.why,
            read_only,
            weaknesses=durability.weaknesses,
            blocked=durability.blocked,
            trouble=trouble,
        )

    def _examine(self) -> None:
        """Check that a write lasts and pages are sound; the file's condition keeps the outcome."""
        condition = self.file.condition
        with suppress(StoreError):
            if condition.due("write", PROBE_SECONDS):
                with self.file.writing(probe=True) as database:
                    probe_write(database)
        if condition.due("pages", PAGES_SECONDS):
            with suppress(StoreError), self.file.reading() as database:
                if is_damaged(database, PAGES_FOR_SECONDS):
                    condition.damaged()

    def shards(self) -> list[ShardHealth]:
        """Return its one shard; nothing is written, which would wait for a lock."""
        try:
            health = self._read_health()
        except StoreError as error:
            return [ShardHealth("0", up=False, why=str(error))]
        why = "; ".join(map(str, health.weaknesses))
        return [ShardHealth("0", up=not why, why=why, went_back=bool(why))]

    def reachable_part(self) -> tuple[SqliteStore, bool]:
        return self, True

    def close(self) -> None:
        self.file.close()
