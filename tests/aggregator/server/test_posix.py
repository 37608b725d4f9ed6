"""What stores and servers ask of macOS, whose answers are simulated here."""

from __future__ import annotations

import fcntl
import os
import resource
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from veilcount_aggregator.store import open_store
from veilcount_aggregator.store.sqlite import database
from veilcount_serving.posix import sync_file
from veilcount_serving.worker_processes import OPEN_MAX, raise_file_limit
from veilcount_shuffler.crowd_states import CrowdStates
from veilcount_shuffler.disk import Disk

F_FULLFSYNC = 51
Calls = list[str]


@pytest.fixture
def on_macos(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", F_FULLFSYNC, raising=False)
    return monkeypatch


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """The calls that write a file to the disk."""
    seen = Calls()
    monkeypatch.setattr(os, "fsync", lambda _: seen.append("fsync"))
    monkeypatch.setattr(os, "fdatasync", lambda _: seen.append("fdatasync"))
    monkeypatch.setattr(fcntl, "fcntl", lambda _, number: seen.append(f"fcntl {number}"))
    return seen


def test_on_macos_the_disk_writes_its_cache(on_macos: pytest.MonkeyPatch, calls: Calls) -> None:
    sync_file(0)
    sync_file(0, data_only=True)

    assert calls == ["fcntl 51"] * 2


def test_a_file_system_that_cannot_is_synced(on_macos: pytest.MonkeyPatch, calls: Calls) -> None:
    def refuse(_: int, __: int) -> None:
        raise OSError(45, "not supported")

    on_macos.setattr(fcntl, "fcntl", refuse)
    sync_file(0)

    assert calls == ["fsync"]


def test_elsewhere_a_file_is_synced(calls: Calls) -> None:
    sync_file(0)
    sync_file(0, data_only=True)

    assert calls == ["fsync", "fdatasync"]


# -- the limit of open files -----------------------------------------------------------------------


def refuse_infinity(soft: int, _: int) -> None:
    """Refuse as macOS does what it calls the limit itself."""
    if soft > OPEN_MAX:
        raise ValueError("current limit exceeds maximum limit")


def raise_to_the_limit() -> None:
    """Planted: as on Linux."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@pytest.mark.parametrize(
    ("raising", "expected"), [(raise_file_limit, [OPEN_MAX]), (raise_to_the_limit, [])]
)
def test_macos_lets_a_process_open_fewer_files_than_it_says(
    on_macos: pytest.MonkeyPatch, raising: Callable[[], None], expected: list[int]
) -> None:
    allowed: list[int] = []

    def setrlimit(_: int, limits: tuple[int, int]) -> None:
        refuse_infinity(*limits)
        allowed.append(limits[0])

    on_macos.setattr(resource, "getrlimit", lambda _: (256, 2**63 - 1))
    on_macos.setattr(resource, "setrlimit", setrlimit)
    try:
        raising()
    except ValueError:
        assert not expected

    assert allowed == expected


# -- pragma fullfsync ------------------------------------------------------------------------------


def is_full(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("pragma fullfsync").fetchone() == (1,))


def test_a_store_has_its_commits_written_to_the_disk(tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:///{tmp_path}/store.db", make=True)):
        (opened,) = (each for each in database._live if each.place.path.parent == tmp_path)
        with opened.writing() as connection:
            assert is_full(connection)


def test_a_shuffler_has_its_commits_written_to_the_disk(tmp_path: Path) -> None:
    with closing(CrowdStates(tmp_path, Disk())) as states:
        assert is_full(states._db)


def test_sqlite_alone_does_not(tmp_path: Path) -> None:
    """Planted: what is not asked for is not done."""
    with closing(sqlite3.connect(tmp_path / "plain.db")) as connection:
        assert not is_full(connection)
