"""Two processes write one backup, restore or copy into one store: the second is refused."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from veilcount_aggregator.errors import StoreError
from veilcount_aggregator.store import Store, open_store
from veilcount_aggregator.store import copy_lease as lease_module
from veilcount_aggregator.store.backup import backup, restore
from veilcount_aggregator.store.migrate import KIND, CopyProgress, copy_store
from veilcount_aggregator.store.target_lock import exclusive_file
from veilcount_serving.errors import SettingsError
from veilcount_shared.verdict import Verdict

from ...system.server import wait_until
from .conftest import served
from .series_fixtures import DAILY, report, send

FORK = multiprocessing.get_context("fork")


def run(work: Callable[..., None], *arguments: Any) -> tuple[BaseProcess, Connection]:
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=work, args=(*arguments, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def receive(pipe: Connection) -> Any:
    assert pipe.poll(60)
    return pipe.recv()


@pytest.fixture
def source(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/source.db"
    with closing(open_store(url, make=True)) as store:
        for first in range(0, 3000, 1000):
            send(store, DAILY, *(report(first + n) for n in range(1000)))
    return url


def at_once(work: Callable[[], object], ready: Any, pipe: Connection) -> None:
    ready.wait(60)
    try:
        work()
    except (SettingsError, StoreError) as error:
        pipe.send(str(error))
    else:
        pipe.send("done")


def race(*works: Callable[[], object]) -> list[str]:
    ready = FORK.Barrier(len(works))
    running = [run(at_once, work, ready) for work in works]
    ends = [receive(pipe) for _, pipe in running]
    for process, pipe in running:
        process.join(60)
        pipe.close()
    return ends


def test_of_backups_and_of_restores_to_one_name_one_is_made_and_it_is_whole(
    source: str, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    to = folder / "today.db"
    ends = race(*[lambda: backup(source, to)] * 4)

    assert ends.count("done") == 1
    others = [end for end in ends if end != "done"]
    assert all("writes it" in each or "exists" in each for each in others), others
    assert [path.name for path in folder.iterdir()] == ["today.db"]

    url = f"sqlite:///{tmp_path}/again.db"
    ends = race(*[lambda: restore(to, url)] * 3)

    assert ends.count("done") == 1
    with closing(open_store(url)) as again:
        assert sum(again.report_counts(DAILY).values()) == 3000


def hold(target: Path, pipe: Connection) -> None:
    with exclusive_file(target, "to"):
        pipe.send(os.getpid())
        time.sleep(600)


def test_the_lock_of_a_process_that_died_holds_nobody_up(source: str, tmp_path: Path) -> None:
    """While it lives, the other is refused with its number, its host and since when."""
    to = tmp_path / "today.db"
    process, pipe = run(hold, to)
    number = receive(pipe)
    with pytest.raises(SettingsError, match=rf"process {number} on .+ writes it since 20"):
        backup(source, to)
    os.kill(number, signal.SIGKILL)
    process.join()
    backup(source, to)

    assert to.exists()


def copy_slowly(source: str, target: str, pipe: Connection) -> None:
    """Copy, and wait after each step for the order to go on."""

    def step(progress: CopyProgress) -> None:
        pipe.send(progress.pieces)
        pipe.recv()

    with closing(open_store(source)) as old, closing(open_store(target, make=True)) as new:
        at_end = "done"
        try:
            copy_store(old, new, where=target, progress=step)
        except StoreError as error:
            at_end = str(error)
        pipe.send(at_end)


def go_on(pipe: Connection) -> str:
    while True:
        pipe.send("go on")
        report = receive(pipe)
        if isinstance(report, str):
            return report


def in_full(store: Store) -> bool:
    again = send(store, DAILY, *(report(n) for n in range(3000)))
    return again == [Verdict.DUPLICATE] * 3000


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.full)])
def url(request: pytest.FixtureRequest, memory: Path) -> Iterator[str]:
    """Where an empty store is: the lease is a record, which each engine keeps alike."""
    with served(request.param, memory) as empty:
        yield empty()


def test_a_second_copy_is_refused_until_the_first_is_dead_and_then_takes_over_at_once(
    url: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "SILENT_SECONDS", 1e6)
    first, pipe = run(copy_slowly, source, url)
    receive(pipe)
    with closing(open_store(source)) as old, closing(open_store(url)) as new:
        with pytest.raises(StoreError, match=f"process {first.pid} on"):
            copy_store(old, new, where=url)
        os.kill(first.pid or 0, signal.SIGKILL)
        first.join()
        copy_store(old, new, where=url)

        assert new.records(KIND).keys() == {"from"}
        assert in_full(new)


@pytest.mark.full
def test_a_copy_that_was_silent_is_taken_over_and_does_not_go_on(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped, as if its host hung; when it wakes it is refused, and has changed nothing."""
    monkeypatch.setattr(lease_module, "SILENT_SECONDS", 1.0)
    monkeypatch.setattr(lease_module, "BEAT_SECONDS", 1e6)  # or it may stop with the file's lock
    url = f"sqlite:///{tmp_path}/target.db"
    first, pipe = run(copy_slowly, source, url)
    receive(pipe)
    os.kill(first.pid or 0, signal.SIGSTOP)
    with closing(open_store(source)) as old, closing(open_store(url)) as new:
        copy_store(old, new, where=url)
        os.kill(first.pid or 0, signal.SIGCONT)
        refused = go_on(pipe)

        assert "taken the copy over" in refused or "was silent" in refused
        wait_until(lambda: not first.is_alive())
        assert in_full(new)
