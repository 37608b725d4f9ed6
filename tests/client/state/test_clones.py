"""A state that was copied or restored is another person with the same ledger."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from veilcount_client.state import DrawOutcome, file_checks, sqlite_database
from veilcount_client.state.losses import Loss
from veilcount_client.state.sqlite import SqliteState
from veilcount_client.state.sqlite_database import FILE

from .conftest import SqliteEngine
from .state_apps import crash, start, store
from .state_fixtures import ANN, SERIES, agree, draw, spent

MOVED = {(Loss.MOVED, ""): 1}
ON_WINDOWS = sys.platform == "win32"


def test_a_copy_is_a_new_person_with_the_same_ledger(sqlite: SqliteEngine, tmp_path: Path) -> None:
    """Counted once; the original goes on."""
    state = sqlite.open()
    agree(state)
    state.commit([draw(0), draw(1)])
    person = state.person(ANN)
    state.close()
    shutil.copytree(sqlite.folder, tmp_path / "copy")
    copy = SqliteState(tmp_path / "copy")

    assert copy.person(ANN).secret != person.secret
    assert copy.person(ANN).consented is None
    assert copy.sent(ANN) == []
    assert copy.used(ANN, SERIES) == (-1, 0)
    assert copy.spent(ANN) == state.spent(ANN)
    assert spent(copy) == 2
    assert copy.losses() == SqliteState(tmp_path / "copy").losses() == MOVED
    assert sqlite.open().person(ANN) == person


# -- restored from a backup ------------------------------------------------------------------------

# A backup of a state, from one moment: the file, and its log if there was one.
Backup = dict[str, bytes]
Restore = Callable[[Path, Backup], None]


def back_up(folder: Path) -> Backup:
    """Copy what holds the state, as a backup does; the mark is not part of it."""
    return {path.name: path.read_bytes() for path in folder.glob(f"{FILE}*")}


def copy_back(folder: Path, backup: Backup) -> None:
    """Copy a backup into the same files, as cp does: their inode numbers stay."""
    for path in folder.glob(f"{FILE}-*"):
        path.unlink()
    for name, content in backup.items():
        (folder / name).write_bytes(content)


def move_back(folder: Path, backup: Backup) -> None:
    """Put other files in their place, as `mv` does."""
    for path in folder.glob(f"{FILE}*"):
        path.rename(folder / f"old-{path.name}")
    copy_back(folder, backup)


def backed_up(engine: SqliteEngine, how: str) -> Backup:
    """Back up between two commits: of one opening, with its log, or of two openings."""
    state = engine.open()
    agree(state)
    state.commit([draw(0)])
    if how == "closed":
        state.close()
    backup = back_up(engine.folder)
    state.commit([draw(1)])
    state.close()
    return backup


@pytest.mark.parametrize("restore", [copy_back, move_back])
@pytest.mark.parametrize("how", ["open", "closed"])
def test_a_restored_file_is_a_new_person(sqlite: SqliteEngine, how: str, restore: Restore) -> None:
    """What the backup knew of is still spent. Counted once."""
    restore(sqlite.folder, backed_up(sqlite, how))
    restored = sqlite.open()

    assert restored.person(ANN).consented is None
    assert restored.consenting() == []
    assert spent(restored) == 1
    assert restored.losses() == sqlite.open().losses() == MOVED


def test_a_second_restoration_is_detected(sqlite: SqliteEngine) -> None:
    """And one of the file that was in use before."""
    backup = backed_up(sqlite, "open")
    latest = back_up(sqlite.folder)
    secrets = set()
    for each in (backup, backup, latest):
        copy_back(sqlite.folder, each)
        restored = sqlite.open()
        secrets.add(restored.person(ANN).secret)

        assert restored.losses() == MOVED
        restored.close()
    assert len(secrets) == 3


def test_a_count_of_openings_does_not_detect_a_restored_file(
    sqlite: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted variant: the slot of a report that was stored is drawn a second time."""
    begin = SqliteState._begin

    def count_opening(state: SqliteState, database: sqlite3.Connection, path: Path) -> bytes:
        root = begin(state, database, path)
        with sqlite_database.transaction(database):
            sqlite_database._count(database)
        state._write_mark(database)
        return root

    @contextmanager
    def write_uncounted(state: SqliteState) -> Iterator[sqlite3.Connection]:
        with state._reading() as database, sqlite_database.transaction(database):
            yield database

    monkeypatch.setattr(SqliteState, "_begin", count_opening)
    monkeypatch.setattr(SqliteState, "_writing", write_uncounted)
    copy_back(sqlite.folder, backed_up(sqlite, "open"))
    restored = sqlite.open()

    assert not restored.losses()
    assert restored.commit([draw(1)]) == [DrawOutcome.STORED]


@pytest.mark.parametrize("commits", [20, pytest.param(400, marks=pytest.mark.full)])
def test_an_old_file_with_a_new_log_is_whole_or_seen(sqlite: SqliteEngine, commits: int) -> None:
    """Only the file is copied back after a crash."""
    agree(sqlite.open())
    app = start(store, sqlite.location)
    printed = app.numbers(commits)
    backup = (sqlite.folder / FILE).read_bytes()
    printed += app.numbers(commits) + app.kill()
    sqlite.close()
    (sqlite.folder / FILE).write_bytes(backup)
    restored = sqlite.open()

    assert restored.losses() or restored.used(ANN, SERIES)[0] >= max(printed)


# -- the mark --------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "writes", [0, *(pytest.param(each, marks=pytest.mark.full) for each in (1, 2, 3, 7))]
)
def test_a_crash_near_the_mark_is_no_rollback(sqlite: SqliteEngine, when: str, writes: int) -> None:
    """A process is killed between its commit and its mark, or right after it."""
    agree(sqlite.open())
    for _ in range(2):
        app = start(crash, sqlite.location, when, writes)
        assert (app.rest(), app.process.exitcode) == ([], -signal.SIGKILL)
    state = sqlite.open()

    assert not state.losses()
    assert state.person(ANN).consented
    assert file_checks.read_mark(sqlite.mark) == sqlite.committed()


def test_a_mark_within_a_transaction_waits_for_its_commit(sqlite: SqliteEngine) -> None:
    """What is rolled back was never counted."""
    state = sqlite.open()
    assert isinstance(state, SqliteState)
    before = file_checks.read_mark(sqlite.mark)
    with suppress(ZeroDivisionError), state._writing() as outer:
        with state._writing() as inner:
            sqlite_database.keep(inner, "a", "1")
        assert outer.in_transaction
        assert file_checks.read_mark(sqlite.mark) == before
        raise ZeroDivisionError

    assert file_checks.read_mark(sqlite.mark) == before == sqlite.committed()


def _link(path: Path) -> None:
    (path.parent / "elsewhere").write_bytes(b"%020d %020d\n" % (10**9, 10**9))
    path.symlink_to(path.parent / "elsewhere")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    "spoil",
    [
        _link,
        pytest.param(_pipe, marks=pytest.mark.skipif(ON_WINDOWS, reason="it has no such pipes")),
        Path.mkdir,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"%020d %020d\n" % (10**9, 10**9 + 1)),
        lambda path: path.write_bytes("\u0661 \u0661".encode()),
    ],
    ids=["link", "pipe", "folder", "empty", "torn", "other digits"],
)
def test_an_unreadable_mark_is_ignored(
    sqlite: SqliteEngine, spoil: Callable[[Path], object]
) -> None:
    """It detects nothing and disturbs nothing; a link is not followed."""
    state = sqlite.open()
    agree(state)
    state.close()
    sqlite.mark.unlink()
    spoil(sqlite.mark)
    elsewhere = sqlite.folder / "elsewhere"
    content = elsewhere.read_bytes() if elsewhere.exists() else b""
    again = sqlite.open()

    assert again.commit([draw()]) == [DrawOutcome.STORED]
    assert not again.losses()
    assert again.person(ANN).consented
    assert not elsewhere.exists() or elsewhere.read_bytes() == content
