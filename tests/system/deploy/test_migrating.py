"""A store is upgraded while reports come: each is in it once, and nobody writes what he is too old
to understand.

There is one version of the tables so far, so the next one is planted here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.aggregator.store.series_fixtures import DAILY, report, send
from tests.system.server import wait_until
from veilcount_aggregator.errors import StoreUnfit
from veilcount_aggregator.store.sqlite import SqliteStore
from veilcount_aggregator.store.sqlite.connection import SqliteUrl
from veilcount_aggregator.store.sqlite.database import SqliteDatabase
from veilcount_aggregator.store.sqlite.schema import STEPS
from veilcount_shared.verdict import Verdict

#: it looks at all that is there: what would be written beside it meanwhile would be missed
PLANTED = (
    "create table migrated (seen integer not null) strict;\n"
    "insert into migrated select count(*) from ledger"
)
OLD, NEW = STEPS, (*STEPS, PLANTED)


def opened(path: Path, steps: tuple[str, ...], *, make: bool = False) -> SqliteStore:
    """Open the store as the program of a version does."""
    file = SqliteDatabase(SqliteUrl(path), steps)
    file.open(make=make)
    return SqliteStore(file)


@dataclass
class Writer:
    """A program that counts one report after another, until it is refused or stopped."""

    store: SqliteStore
    first: int
    acknowledged: int = 0
    refused: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def write(self) -> None:
        """Go on for as long as the store is taken for a known one."""
        while not self.stopping.is_set():
            try:
                verdicts = send(self.store, DAILY, report(self.first + self.acknowledged))
            except StoreUnfit as error:
                self.refused.append(str(error))
                return
            assert verdicts == [Verdict.COUNTED]
            self.acknowledged += 1


@contextmanager
def writing(path: Path, steps: tuple[str, ...], firsts: range) -> Iterator[list[Writer]]:
    """Have several programs of a version write."""
    writers = [Writer(opened(path, steps), first) for first in firsts]
    threads = [threading.Thread(target=each.write) for each in writers]
    for thread in threads:
        thread.start()
    try:
        yield writers
    finally:
        for each, thread in zip(writers, threads, strict=True):
            each.stopping.set()
            thread.join()
            each.store.close()


def test_a_store_is_upgraded_while_old_and_new_programs_write(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    opened(path, OLD, make=True).close()
    with writing(path, OLD, range(0, 3_000_000, 1_000_000)) as old:
        wait_until(lambda: all(each.acknowledged > 20 for each in old))
        with writing(path, NEW, range(5_000_000, 7_000_000, 1_000_000)) as new:
            wait_until(lambda: all(each.refused for each in old))
            wait_until(lambda: all(each.acknowledged > 20 for each in new))
    store = opened(path, NEW)
    with store.file.reading() as database:
        seen = database.execute("select seen from migrated").fetchall()
        sound = database.execute("pragma integrity_check").fetchall()
    counted = sum(store.report_counts(DAILY).values())
    store.close()
    before = sum(each.acknowledged for each in old)

    assert seen == [(before,)]  # taken once, and nothing was written beside it or behind it
    assert counted == before + sum(each.acknowledged for each in new)
    assert all("upgrade this one" in each.refused[0] for each in old)
    assert not any(each.refused for each in new)
    assert sound == [("ok",)]
