"""Processes that share a state: `python -m tests.client.state.state_apps NAME LOCATION ...`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.client.state.state_fixtures import (
    ANN,
    COST,
    NOW,
    OTHER,
    SERIES,
    agree,
    draw,
)
from veilcount_client.state import DrawOutcome, file_checks
from veilcount_client.state.factory import open_state

ROOT = Path(__file__).parents[3]


def start(app: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a process that uses a state."""
    command = [sys.executable, "-m", "tests.client.state.state_apps", app, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def numbers(process: subprocess.Popen[str], lines: int) -> list[int]:
    """Return the first numbers that a process prints, one a line."""
    assert process.stdout is not None
    return [int(process.stdout.readline()) for _ in range(lines)]


def all_numbers(process: subprocess.Popen[str]) -> list[int]:
    """Wait for a process to end; return the numbers that it has printed."""
    text, _ = process.communicate(timeout=100)
    return [int(word) for word in text.split()]


def share(location: str, periods: str) -> None:
    """Commit draws for every slot, then lease until nothing is left.

    Print how many were stored, how many events, how often a period went back, and what was leased.
    """
    state, last, back = open_state(location), -1, 0
    agree(state)
    stored = charged = 0
    events = [
        draw(0, at, lineage="event", series=OTHER, day_cap=5 * COST, life_cap=7 * COST)
        for at in range(7)
    ]
    for period in range(int(periods)):
        stored += state.commit([draw(period, message=os.urandom(8))]) == [DrawOutcome.STORED]
        charged += state.commit(events).count(DrawOutcome.STORED)
        now = state.used(ANN, SERIES)[0]
        back, last = back + (now < last), now
    state.commit([draw(at, series="ef" * 32, free=True) for at in range(20)])
    leased = []
    while queued_reports := state.lease(NOW, NOW + 600, 3):
        leased += [each.number for each in queued_reports]
    state.close()
    print(stored, charged, back, *leased)


def store(location: str) -> None:
    """Store without an end, and print each period after it was stored."""
    state = open_state(location)
    for period in range(state.used(ANN, SERIES)[0] + 1, 60_000):
        if state.commit([draw(period, life_cap=1 << 40)]) == [DrawOutcome.STORED]:
            os.write(1, b"%d\n" % period)


def crash(location: str, when: str, writes: str) -> None:
    """Store, and end by kill -9 before or after the mark is written, after so many writes."""
    state, write, left = open_state(location), file_checks.write_mark, [int(writes)]

    def write_and_end(mark: Path, transactions: int) -> None:
        left[0] -= 1
        if when == "after" or left[0] >= 0:
            write(mark, transactions)
        if left[0] < 0:
            os.kill(os.getpid(), 9)

    file_checks.write_mark = write_and_end
    for period in range(state.used(ANN, SERIES)[0] + 1, 60_000):
        state.commit([draw(period, life_cap=1 << 40)])


def fork(location: str, folder: str) -> None:
    """Fork, let the parent end first, and go on in the child."""
    state = open_state(location)
    agree(state)
    state.commit([draw(0)])
    reader, writer = os.pipe()
    if os.fork():
        os.read(reader, 1)
        state.commit([draw(2)])
        state.close()
        os._exit(0)
    state.commit([draw(1)])
    parent = os.getppid()  # before it may end
    os.write(writer, b".")
    while os.getppid() == parent:
        time.sleep(0.01)
    state.commit([draw(3)])
    (Path(folder) / "forked").touch()
    os.kill(os.getpid(), 9)


APPS: tuple[Callable[..., None], ...] = (share, store, crash, fork)

if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    {app.__name__: app for app in APPS}[name](*arguments)
