"""Apps that share a state, each a fork of one process that has imported everything."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from veilcount_client.state import DrawOutcome, file_checks
from veilcount_client.state.factory import open_state

from .state_fixtures import ANN, COST, NOW, OTHER, SERIES, agree, draw

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload([__name__])
Report = Callable[[int], None]


@dataclass
class App:
    """A process that reports numbers."""

    process: ForkServerProcess
    reader: Connection[int, int]

    def numbers(self, most: int) -> list[int]:
        """Return the next numbers, as they come; fewer if the process ends before."""
        found: list[int] = []
        try:
            while len(found) < most:
                found.append(self.reader.recv())
        except (EOFError, OSError):  # it ended, perhaps in the middle of a number
            self.process.join(100)
        return found

    def kill(self) -> list[int]:
        """End it by kill -9; return what it has reported meanwhile."""
        self.process.kill()
        return self.rest()

    def rest(self) -> list[int]:
        """Wait for its end; return what it has reported until then."""
        return self.numbers(1 << 30)


def start(app: Callable[..., None], *arguments: object) -> App:
    reader, writer = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=app, args=(writer.send, *arguments), daemon=True)
    process.start()
    writer.close()
    return App(process, reader)


def share(report: Report, location: str, periods: int) -> None:
    """Commit draws for every slot, then lease until nothing is left.

    Report how many were stored, how many events, how often a period went back, and what was leased.
    """
    state, last, back = open_state(location), -1, 0
    agree(state)
    stored = charged = 0
    events = [
        draw(0, at, lineage="event", series=OTHER, day_cap=5 * COST, life_cap=7 * COST)
        for at in range(7)
    ]
    for period in range(periods):
        stored += state.commit([draw(period, message=os.urandom(8))]) == [DrawOutcome.STORED]
        charged += state.commit(events).count(DrawOutcome.STORED)
        now = state.used(ANN, SERIES)[0]
        back, last = back + (now < last), now
    state.commit([draw(at, series="ef" * 32, free=True) for at in range(20)])
    leased = []
    while queued_reports := state.lease(NOW, NOW + 600, 3):
        leased += [each.number for each in queued_reports]
    state.close()
    for number in (stored, charged, back, *leased):
        report(number)


def store(report: Report, location: str) -> None:
    """Store without an end, and report each period after it was stored."""
    state = open_state(location)
    for period in range(state.used(ANN, SERIES)[0] + 1, 60_000):
        if state.commit([draw(period, life_cap=1 << 40)]) == [DrawOutcome.STORED]:
            report(period)


def crash(_: Report, location: str, when: str, writes: int) -> None:
    """Store, and end by kill -9 before or after the mark is written, after so many writes."""
    state, write, left = open_state(location), file_checks.write_mark, [writes]

    def write_and_end(mark: Path, transactions: int) -> None:
        left[0] -= 1
        if when == "after" or left[0] >= 0:
            write(mark, transactions)
        if left[0] < 0:
            os.kill(os.getpid(), 9)

    file_checks.write_mark = write_and_end
    for period in range(state.used(ANN, SERIES)[0] + 1, 60_000):
        state.commit([draw(period, life_cap=1 << 40)])


def fork(_: Report, location: str, folder: Path) -> None:
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
    (folder / "forked").touch()
    os.kill(os.getpid(), 9)
