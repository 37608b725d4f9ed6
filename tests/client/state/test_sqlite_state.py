"""A state in SQLite: a full disk, a damaged file, and a file that cannot be used."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from veilcount_client.state import StateError, sqlite_database
from veilcount_client.state.losses import Loss
from veilcount_client.state.sqlite import SqliteState
from veilcount_client.state.sqlite_database import FILE, LOG_PAGES

from .conftest import SqliteEngine
from .state_fixtures import ANN, SERIES, agree, draw, lease_all


def execute(sqlite: SqliteEngine, statement: str) -> None:
    with closing(sqlite3.connect(sqlite.folder / FILE)) as database, database:
        database.execute(statement)


@pytest.mark.parametrize("version", [1, 99])
def test_a_file_of_another_release_is_refused(sqlite: SqliteEngine, version: int) -> None:
    sqlite.open().close()
    execute(sqlite, f"pragma user_version = {version}")

    with pytest.raises(StateError, match="written by another release of veilcount"):
        sqlite.open()


@pytest.mark.parametrize("pages", [LOG_PAGES, 1000])
def test_the_log_stays_small(
    sqlite: SqliteEngine, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the thousand pages that are SQLite's default, it grows to megabytes next to 100 kB."""
    monkeypatch.setattr(sqlite_database, "LOG_PAGES", pages)
    monkeypatch.setattr(sqlite_database, "LOG_BYTES", pages << 12)
    state = sqlite.open()
    agree(state)
    for number in range(300):
        state.keep("note", str(number))
    log_bytes = sqlite.folder.joinpath(f"{FILE}-wal").stat().st_size

    assert (log_bytes < 200_000) == (pages == LOG_PAGES)


# -- damage ----------------------------------------------------------------------------------------


def damage(folder: Path, start: int) -> bytes:
    """Overwrite a file by noise, from an offset on; return what it holds then."""
    path = folder / FILE
    content = path.read_bytes()[:start] + Random(1).randbytes(path.stat().st_size - start)
    path.write_bytes(content)
    return content


def test_a_damaged_file_is_left_and_counted_and_the_next_begins(sqlite: SqliteEngine) -> None:
    """Once: another opening finds nothing new."""
    state = sqlite.open()
    agree(state)
    state.close()
    noise = damage(sqlite.folder, 0)
    anew, again = sqlite.open(), sqlite.open()

    assert (sqlite.folder / FILE).read_bytes() == noise
    assert anew.root == again.root != state.root
    assert anew.person(ANN).consented is None
    assert again.losses() == {(Loss.CORRUPT, ""): 1}


def test_all_that_have_a_damaged_file_open_agree_on_the_next(sqlite: SqliteEngine) -> None:
    """Each learns it with one error, and it is counted once."""
    states = [sqlite.open() for _ in range(3)]
    agree(states[0])
    for state in states:
        state.close()
    noise = damage(sqlite.folder, 4096)
    for state in states:
        with pytest.raises(StateError, match="begins anew"):
            state.person(ANN)
    for state in states:
        agree(state)
        state.commit([draw(state.used(ANN, SERIES)[0] + 1)])

    assert (sqlite.folder / FILE).read_bytes() == noise
    assert len({state.root for state in states}) == 1
    assert states[2].used(ANN, SERIES) == (2, 1)
    assert states[2].losses() == {(Loss.CORRUPT, ""): 1}


def test_an_emptied_file_is_counted_as_damage(sqlite: SqliteEngine) -> None:
    """The mark next to it shows that there was one."""
    sqlite.open().close()
    for path in sqlite.folder.glob(f"{FILE}*"):
        path.write_bytes(b"")

    assert sqlite.open().losses() == {(Loss.CORRUPT, ""): 1}


def test_a_stored_report_that_cannot_be_one_is_damage(sqlite: SqliteEngine) -> None:
    """It would stop the uploader for ever."""
    state = sqlite.open()
    agree(state)
    state.commit([draw()])
    execute(sqlite, "update report set slot = 99999")
    with pytest.raises(StateError, match="begins anew"):
        lease_all(state)

    assert lease_all(state) == []
    assert state.losses() == {(Loss.CORRUPT, ""): 1}


def test_a_programming_error_is_not_damage(sqlite: SqliteEngine) -> None:
    state = sqlite.open()
    agree(state)
    with pytest.raises(StateError):
        state.keep("a", None)  # type: ignore[arg-type] # the error

    assert state.person(ANN).consented is True
    assert not state.losses()


def test_a_commit_is_written_to_the_disk_on_macos_too(tmp_path: Path) -> None:
    """Of macOS alone, whose fsync(2) leaves it to the disk's own cache."""
    with SqliteState(tmp_path)._reading() as database:
        assert database.execute("pragma fullfsync").fetchone() == (1,)
