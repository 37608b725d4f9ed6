"""The height of the store, compared with what this machine has acknowledged (`acknowledged`).

One file has one machine's processes, which share what they have acknowledged: so each change
compares the height under the store's own lock, and no other process can overtake it.
"""

from __future__ import annotations

import sqlite3
from datetime import datetime
from pathlib import Path

from veilcount_serving.posix import IS_POSIX

from ...errors import StoreWentBack
from ..acknowledged import ENDING, FIX, AcknowledgedHeights, ShardHeight

PLACE = 0  # of its only shard


class SqliteHeight:
    """The height of one file. For any thread of any process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        file = path.with_name(path.name + ENDING)
        self._acknowledged = AcknowledgedHeights(file if IS_POSIX else None)

    def raised(self, database: sqlite3.Connection) -> ShardHeight:
        """Raise the height in a transaction, and return it; refuse one of a file that went back."""
        if loss := self.loss(database):
            raise StoreWentBack(f"{self._path}: {loss}. {FIX}")
        raised = "update state set height = height + 1 returning id, height, accepted"
        return _height(database.execute(raised).fetchone())

    def keep(self, height: ShardHeight) -> None:
        """Keep the height of a transaction that is about to be acknowledged."""
        self._acknowledged.keep(PLACE, height)

    def loss(self, database: sqlite3.Connection) -> str:
        """Return what the file lacks of what was acknowledged; "" if nothing."""
        last = self._acknowledged.read(PLACE)  # first: the file has not gone down since
        return read_height(database).loss(last)

    def is_reached(self, database: sqlite3.Connection) -> bool:
        """Whether the file has all that was acknowledged; False if no height was kept."""
        last = self._acknowledged.read(PLACE)
        return last is not None and not read_height(database).loss(last)

    def sync(self) -> None:
        """Wait until the disk has what was kept."""
        self._acknowledged.sync()


def read_height(database: sqlite3.Connection) -> ShardHeight:
    """Return the height as a transaction sees it."""
    return _height(database.execute("select id, height, accepted from state").fetchone())


def _height(row: tuple[str, int, int]) -> ShardHeight:
    store, height, accepted = row
    return ShardHeight(store, "", height, accepted)


def renew_id(database: sqlite3.Connection) -> None:
    """Make the file another store for every host that has acknowledged reports in it."""
    database.execute("update state set id = lower(hex(randomblob(16)))")


def accept_losses(database: sqlite3.Connection, now: datetime) -> None:
    """Accept the file as it is."""
    database.execute("update state set accepted = ?", (int(now.timestamp() * 1e6),))
