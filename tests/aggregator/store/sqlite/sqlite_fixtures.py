"""Stores in SQLite files, processes that are forked, and disks with little space."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from shutil import which

import pytest

from veilcount_aggregator.store import open_store
from veilcount_aggregator.store.sqlite.store import SqliteStore
from veilcount_shared.verdict import Verdict

from ..series_fixtures import LINKED, report, send

FORK = multiprocessing.get_context("fork")


def open_at(path: Path, *, make: bool = True, mode: str = "") -> SqliteStore:
    store = open_store(f"sqlite:///{path}{mode}", make=make)
    assert isinstance(store, SqliteStore)
    return store


def is_sound(store: SqliteStore) -> bool:
    with store.file.reading() as database:
        return bool(database.execute("pragma integrity_check").fetchone() == ("ok",))


def in_child(work: Callable[..., None], *arguments: object) -> int | None:
    process = FORK.Process(target=work, args=arguments)
    process.start()
    process.join()
    return process.exitcode


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a disk of one MiB, where that is allowed."""
    folder.mkdir()
    mount = [which("mount") or "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield folder
    finally:
        subprocess.run([which("umount") or "umount", str(folder)], check=True)


def fill_disk(disk: Path) -> Path:
    ballast = disk / "ballast"
    with pytest.raises(OSError, match="No space"):
        ballast.write_bytes(bytes(2 << 20))
    return ballast


class Writer:
    """A process that counts one row for each number that it is sent."""

    def __init__(self, path: Path) -> None:
        self._ours, theirs = FORK.Pipe()
        self.process = FORK.Process(target=_write, args=(path, theirs))
        self.process.start()
        theirs.close()
        assert self._ours.poll(60)
        assert self._ours.recv() == "open"

    def count(self, number: int) -> None:
        self._ours.send(number)
        assert self._ours.poll(60)
        assert self._ours.recv() == [Verdict.COUNTED]

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self._ours.close()


def _write(path: Path, pipe: Connection) -> None:
    store = open_at(path)
    pipe.send("open")
    while True:
        pipe.send(send(store, LINKED, report(pipe.recv())))


def set_format(path: Path, number: int) -> None:
    """Give a store the format of another version."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"pragma user_version = {number}")
