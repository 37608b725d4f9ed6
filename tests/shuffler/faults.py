"""Disks that end a process at a step, or switch to another process there."""

from __future__ import annotations

import fcntl
import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence

from veilcount_shuffler.disk import Disk


class Crash(BaseException):
    """The process ends here."""


class CrashingDisk(Disk):
    """Ends the process at its n-th step; 0: never. A write that it ends at is torn."""

    def __init__(self, at: int = 0, end: Callable[[], None] | None = None) -> None:
        self.steps = 0
        self._at = at
        self._end = end

    def step(self, what: str) -> None:
        """Count, and end."""
        self.steps += 1
        if self.steps == self._at:
            self._crash()

    def append(self, descriptor: int, content: bytes) -> None:
        """Append, or half of it and no more."""
        if self.steps + 1 == self._at:
            os.write(descriptor, content[: len(content) // 2 + 7])
        super().append(descriptor, content)

    def _crash(self) -> None:
        if self._end is not None:
            self._end()
        raise Crash


class FullDisk(Disk):
    """Has no more room after some bytes: a write stops in the middle."""

    def __init__(self, left: int) -> None:
        self.left = left

    def append(self, descriptor: int, content: bytes) -> None:
        """Append what fits."""
        if len(content) > self.left:
            os.write(descriptor, content[: self.left])
            self.left = 0
            raise OSError(28, "No space left on device")
        self.left -= len(content)
        super().append(descriptor, content)


class Schedule:
    """Runs tasks a step each in turn, as a list of choices says; the rest run to their ends."""

    def __init__(self, choices: Sequence[int]) -> None:
        self.options: list[int] = []  # how many tasks could have run at each choice
        self.taken: list[int] = []
        self._choices = list(choices)
        self._turn = threading.Condition()
        self._current: int | None = None
        self._live: set[int] = set()
        self._blocked: set[int] = set()
        self._of_thread: dict[int, int] = {}
        self.failures: list[BaseException] = []

    def run(self, tasks: Sequence[Callable[[], object]]) -> None:
        """Run the tasks to their ends."""
        self._live = set(range(len(tasks)))
        threads = [
            threading.Thread(target=self._task, args=(number, task))
            for number, task in enumerate(tasks)
        ]
        for thread in threads:
            thread.start()
        with self._turn:
            self._choose(None)
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive(), "the tasks wait for each other"

    def pause(self, *, blocked: bool = False) -> None:
        """Let another task run, if it is chosen."""
        number = self._of_thread.get(threading.get_ident())
        if number is None:
            return
        with self._turn:
            self._blocked = self._blocked | {number} if blocked else set()
            self._choose(number)
            self._turn.wait_for(lambda: self._current == number)

    def _task(self, number: int, task: Callable[[], object]) -> None:
        self._of_thread[threading.get_ident()] = number
        with self._turn:
            self._turn.wait_for(lambda: self._current == number)
        try:
            task()
        except BaseException as error:  # noqa: BLE001 - the test sees it
            self.failures.append(error)
        with self._turn:
            self._live.discard(number)
            self._blocked.clear()
            self._choose(None)

    def _choose(self, running: int | None) -> None:
        """Choose who runs: the running task first, so that choice 0 is no switch."""
        ready = sorted(self._live - self._blocked, key=lambda number: (number != running, number))
        if not ready:
            assert not self._live, "the tasks wait for each other"
            return
        place = len(self.taken)
        choice = self._choices[place] if place < len(self._choices) else 0
        self.options.append(len(ready) if running in ready else -len(ready))
        self.taken.append(choice)
        self._current = ready[choice]
        self._turn.notify_all()


class ScheduledDisk(Disk):
    """Switches at every step that another task sees; whoever waits for a lock lets others run."""

    def __init__(self, is_seen: Callable[[str], bool]) -> None:
        self.schedule = Schedule(())
        self._is_seen = is_seen

    def step(self, what: str) -> None:
        """Let another task run."""
        if self._is_seen(what):
            self.schedule.pause()

    def take(self, descriptor: int, kind: int) -> None:
        """Take a lock once it is free."""
        self.step("lock")
        while True:
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                self.schedule.pause(blocked=True)
            else:
                return


Run = Callable[[Sequence[int]], Schedule]


def schedules(most_switches: int, run: Run) -> Iterator[Schedule]:
    """Yield every schedule in which running tasks are switched away from at most so often."""
    waiting: list[list[int]] = [[]]
    while waiting:
        prefix = waiting.pop()
        schedule = run(prefix)
        yield schedule
        waiting += _branches(schedule, len(prefix), most_switches)


def sampled_schedules(switches: int, run: Run, number: int, seed: int) -> Iterator[Schedule]:
    """Yield so many schedules with up to so many switches, each at a place drawn after the last."""
    randomness = random.Random(seed)
    for _ in range(number):
        prefix: list[int] = []
        for switch in range(switches):
            branches = _branches(run(prefix), len(prefix), switch + 1)
            prefix = randomness.choice(branches) if branches else prefix
        yield run(prefix)


def _branches(schedule: Schedule, start: int, most_switches: int) -> list[list[int]]:
    """Return the beginnings that differ from a schedule's in one more choice, from a place on."""
    branches: list[list[int]] = []
    for place in range(start, len(schedule.taken)):
        head = schedule.taken[:place]
        switches = sum(
            choice > 0 and options > 0
            for choice, options in zip(head, schedule.options, strict=False)
        )
        options = schedule.options[place]
        if options < 0 or switches < most_switches:  # a task that ended or waits is no switch
            branches += [[*head, choice] for choice in range(1, abs(options))]
    return branches
