"""The write-ahead log of an open store is removed: put back, saved, or refused; never lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.errors import StoreUnavailable, StoreUnfit, StoreWentBack
from veilcount_aggregator.store import LOG_RESTORED, Cell, ServiceCounter
from veilcount_aggregator.store.sqlite import wal_guard
from veilcount_aggregator.store.sqlite.database import SqliteDatabase
from veilcount_aggregator.store.sqlite.height import SqliteHeight
from veilcount_aggregator.store.sqlite.store import SqliteStore
from veilcount_aggregator.store.sqlite.wal_guard import WalGuard
from veilcount_shared.verdict import Verdict

from ..series_fixtures import LINKED, report, send
from .sqlite_fixtures import Writer, is_sound, open_at

COUNTED, DUPLICATE = Verdict.COUNTED, Verdict.DUPLICATE
PUBLIC = ("-wal", "-shm")
FILES = ["store.db", "store.db-height", "store.db-lock"]


def remove(path: Path, *ends: str) -> None:
    for end in ends:
        path.with_name(f"{path.name}{end}").unlink()


def link_of(path: Path) -> Path:
    """Return the second name of a store's log."""
    return path.with_name(f".{path.name}-{path.stat().st_ino}-wal")


def inode(path: Path, end: str) -> int:
    return path.with_name(f"{path.name}{end}").stat().st_ino


@pytest.fixture
def store(store: SqliteStore) -> SqliteStore:
    send(store, LINKED, report(1))
    return store


@pytest.mark.parametrize("ends", [("-wal",), ("-shm",), PUBLIC, (*PUBLIC, "-lock")])
def test_a_removed_file_is_put_back_before_the_next_commit_is_acknowledged(
    ends: tuple[str, ...], path: Path, store: SqliteStore
) -> None:
    before = [inode(path, end) for end in PUBLIC]
    remove(path, *ends)

    assert send(store, LINKED, report(2)) == [COUNTED]
    assert [inode(path, end) for end in PUBLIC] == before
    assert inode(path, "-lock")


def test_a_removed_log_is_put_back_by_the_commit_under_way_and_by_the_check_of_each_second(
    path: Path, store: SqliteStore
) -> None:
    """So an idle store is mended too."""
    before = inode(path, "-wal")
    with store.file.writing() as database:
        database.execute("insert into record values ('a', 'b', x'00')")
        remove(path, *PUBLIC)
    assert inode(path, "-wal") == before

    remove(path, *PUBLIC)
    store.durability()
    assert inode(path, "-wal") == before


@pytest.fixture
def other_log(path: Path) -> Iterator[SqliteStore]:
    """A store without open connections, whose log was removed while another process wrote to it."""
    writer = Writer(path)
    with closing(open_at(path)) as store:
        store.file.before_fork()  # closes them
        store.file.after_fork_in_parent()
        writer.count(1)
        remove(path, *PUBLIC)
        yield store
    writer.kill()


@pytest.mark.parametrize("planted", [False, True], ids=["", "planted"])
def test_a_new_reader_puts_a_removed_log_back_before_it_opens_one(
    other_log: SqliteStore, monkeypatch: pytest.MonkeyPatch, *, planted: bool
) -> None:
    """Planted: it opens the log unchecked, and does not see what was acknowledged."""
    if planted:
        monkeypatch.setattr(SqliteDatabase, "keep_log", lambda _: None)

    assert other_log.report_counts(LINKED) == ({} if planted else {Cell(0, 0): 1})


@dataclass
class FileChecks:
    """How often files are looked up by name, and how often the log's names are compared."""

    lookups: int = 0
    log_checks: int = 0

    def during(self, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> FileChecks:
        stat, intact = os.stat, WalGuard.intact

        def counted_stat(*arguments: Any, **named: Any) -> os.stat_result:
            self.lookups += 1
            return stat(*arguments, **named)

        def counted_check(guard: WalGuard) -> bool:
            self.log_checks += 1
            return intact(guard)

        with monkeypatch.context() as patches:
            patches.setattr(os, "stat", counted_stat)
            patches.setattr(WalGuard, "intact", counted_check)
            act()
        return self


def test_a_reading_looks_for_the_file_alone_and_a_commit_compares_the_log_once(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a commit's six look-ups two are of the lock, one of the file and three of the log."""
    store.generation()  # connects a reader
    reading = FileChecks().during(monkeypatch, store.generation)
    commit = FileChecks().during(monkeypatch, lambda: send(store, LINKED, report(2)))

    assert reading == FileChecks(lookups=1, log_checks=0)
    assert commit == FileChecks(lookups=6, log_checks=1)


def test_each_removal_is_counted_in_the_store(path: Path, store: SqliteStore) -> None:
    """With the next commit that succeeds: that of a probe counts as well."""
    for number in (2, 3):
        remove(path, "-wal")
        send(store, LINKED, report(number))
        send(store, LINKED, report(number))

    assert store.service_counts()[ServiceCounter(LOG_RESTORED, "", -1, "")] == 2


def test_another_file_in_the_log_s_place_is_replaced(path: Path, store: SqliteStore) -> None:
    before = inode(path, "-wal")
    other = path.with_name("other")
    other.write_bytes(b"\0" * 5000)
    other.replace(path.with_name("store.db-wal"))

    assert send(store, LINKED, report(1), report(2)) == [DUPLICATE, COUNTED]
    assert inode(path, "-wal") == before


def test_who_opens_while_the_log_is_missing_puts_it_back_first(path: Path) -> None:
    """A second process that made a log of its own would overwrite what the first has."""
    first = Writer(path)
    for number in range(50):
        first.count(number)
    remove(path, *PUBLIC)
    second = open_at(path)

    assert send(second, LINKED, *(report(number) for number in range(50))) == [DUPLICATE] * 50
    assert send(second, LINKED, report(100)) == [COUNTED]
    first.count(101)
    first.kill()
    assert send(second, LINKED, report(101)) == [DUPLICATE]
    assert is_sound(second)
    second.close()


def opens_once_the_log_is_put_back(path: Path) -> bool:
    """Whether a store is refused with the command that puts its log back, and has all after it."""
    for _ in range(2):
        with pytest.raises(StoreWentBack, match=rf"mv {link_of(path)} {path}-wal"):
            open_at(path)
    link_of(path).rename(path.with_name("store.db-wal"))
    with closing(open_at(path)) as again:
        return send(again, LINKED, report(1)) == [DUPLICATE]


def test_a_log_that_is_removed_right_before_a_kill_waits_for_its_operator(path: Path) -> None:
    """Nobody could notice in time: the store is refused until the log is put back, by hand."""
    writer = Writer(path)
    writer.count(1)
    remove(path, *PUBLIC)
    writer.kill()

    assert opens_once_the_log_is_put_back(path)


def kill_in_checkpoint(path: Path, *, written: str) -> None:
    """Leave a file to which a checkpoint has written one table only, and a log without its name."""
    writer = Writer(path)
    writer.count(1)
    writer.kill()
    complete = path.with_name("complete.db")
    for end in ("", "-wal"):
        shutil.copy(path.with_name(path.name + end), complete.with_name(complete.name + end))
    with closing(sqlite3.connect(complete)) as database:
        query = "select rootpage from sqlite_schema where name = ?"
        (page,) = database.execute(query, (written,)).fetchone()
        (size,) = database.execute("pragma page_size").fetchone()
        database.execute("pragma wal_checkpoint(truncate)")
    with complete.open("rb") as source, path.open("rb+") as target:
        for file in (source, target):
            file.seek((page - 1) * size)
        target.write(source.read(size))
    remove(path, *PUBLIC)


@pytest.mark.parametrize("planted", [False, True], ids=["", "planted"])
def test_a_height_that_a_killed_checkpoint_has_written_does_not_discard_the_log(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, planted: bool
) -> None:
    """It reaches what was acknowledged, but the rows of that commit are in the log alone.

    Planted: the height alone decides, and the log is lost.
    """
    kill_in_checkpoint(path, written="state")
    if planted:
        monkeypatch.setattr(wal_guard, "_is_written_back", lambda _: True)
        with closing(open_at(path)) as again:
            assert send(again, LINKED, report(1)) == [COUNTED]
    else:
        assert opens_once_the_log_is_put_back(path)


def replace_log_and_kill(path: Path) -> None:
    writer = Writer(path)
    writer.count(1)
    other = path.with_name("other")
    other.write_bytes(b"\0" * 5000)
    other.replace(path.with_name("store.db-wal"))
    writer.kill()


@pytest.mark.parametrize("height", ["kept", "removed"])
def test_a_log_that_another_file_replaced_right_before_a_kill_waits_for_its_operator(
    path: Path, height: str
) -> None:
    """Where `rm store.db-*` took the height too, nothing says that the database has all of it."""
    replace_log_and_kill(path)
    if height == "removed":
        remove(path, "-height")

    assert opens_once_the_log_is_put_back(path)


def test_a_replaced_log_is_lost_where_the_height_is_not_compared(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error that the test above would find, planted."""
    replace_log_and_kill(path)
    log = link_of(path).stat().st_ino
    monkeypatch.setattr(SqliteHeight, "is_reached", lambda *_: True)

    with closing(open_at(path)):
        assert link_of(path).stat().st_ino != log


def test_a_log_that_another_program_has_written_back_is_no_longer_needed(path: Path) -> None:
    """After a kill somebody opens the file with SQLite's own shell, which cleans up."""
    writer = Writer(path)
    writer.count(1)
    writer.kill()
    with closing(sqlite3.connect(path)) as database:
        database.execute("select count(*) from ledger").fetchone()
    assert not path.with_name("store.db-wal").exists()
    assert link_of(path).exists()
    again = open_at(path)

    assert send(again, LINKED, report(1)) == [DUPLICATE]
    again.close()
    assert sorted(each.name for each in path.parent.iterdir()) == FILES


def test_a_copy_of_the_directory_of_a_killed_store_opens(path: Path, tmp_path: Path) -> None:
    """As a snapshot of a volume has it: links have become files of their own."""
    writer = Writer(path)
    writer.count(1)
    writer.kill()
    copied = tmp_path / "copied"
    copied.mkdir()
    for each in path.parent.iterdir():
        if each.is_file():
            (copied / each.name).write_bytes(each.read_bytes())
    name = link_of(path).name
    (copied / name).rename(copied / f".store.db-{(copied / 'store.db').stat().st_ino}-wal")
    again = open_at(copied / "store.db")

    assert send(again, LINKED, report(1)) == [DUPLICATE]
    again.close()


def test_a_log_without_any_name_is_saved_and_the_store_refused(
    path: Path, store: SqliteStore
) -> None:
    """Every file but the database is removed: it is written back, and nothing more is taken."""
    for each in path.parent.iterdir():
        if each != path:
            each.unlink()

    for _ in range(2):
        with pytest.raises(StoreUnfit, match="written back: stop all processes"):
            send(store, LINKED, report(2))
    copied = path.with_name("copied.db")
    copied.write_bytes(path.read_bytes())
    again = open_at(copied)
    assert send(again, LINKED, report(1)) == [DUPLICATE]
    again.close()
    store.close()
    assert send(store, LINKED, report(1), report(3)) == [DUPLICATE, COUNTED]


def test_a_log_without_a_second_name_is_noticed_where_links_cannot_be_made(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    store = open_at(path)
    send(store, LINKED, report(1))
    remove(path, "-wal")

    with pytest.raises((StoreUnfit, StoreUnavailable), match="stop all processes"):
        send(store, LINKED, report(2))
    store.close()
    assert send(store, LINKED, report(1)) == [DUPLICATE]
    store.close()
