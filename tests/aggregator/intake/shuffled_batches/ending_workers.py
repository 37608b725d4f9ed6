"""Workers that end at one of their writes: between two statements, inside a write, or at a call."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from veilcount_aggregator.store.redis.shard_client import ShardClient
from veilcount_aggregator.store.sqlite.database import SqliteDatabase

from ....processes import limit_files

Reply = Callable[[int], None]
STRIDE = 1030  # of the bytes of a log: a frame of 4,120 is cut four times
DONE = 255  # the work ended before its process was ended


class Ending(Protocol):
    """Ends this process at one of its writes, by number; 0: at none."""

    def arm(self, at: int) -> None:
        """Begin to count."""

    def places(self) -> int:
        """Return how many writes there were so far."""


@dataclass
class StatementEnding:
    """Ends it before a statement of SQLite, its commits included, and behind each commit."""

    at: int = 0
    passed: int = field(default=0, init=False)

    def arm(self, at: int) -> None:
        """Step at each statement, and when a write is durable but not answered."""
        self.at, writing = at, SqliteDatabase.writing

        @contextmanager
        def stepping(database: SqliteDatabase, **named: Any) -> Iterator[Any]:
            with writing(database, **named) as connection:
                connection.set_trace_callback(lambda _: self.step())
                yield connection
            self.step()

        SqliteDatabase.writing = stepping  # type: ignore[method-assign, assignment] # in this process alone

    def step(self) -> None:
        """Count, and end."""
        self.passed += 1
        if self.passed == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def places(self) -> int:
        """Return how many steps there were."""
        return self.passed


class CallEnding(StatementEnding):
    """Ends it before and after each call that writes to Redis: a call is one step there."""

    def arm(self, at: int) -> None:
        """Step at both ends of a call."""
        self.at, execute_once = at, ShardClient.execute_once

        def stepping(client: ShardClient, commands: Any, wait: Any) -> list[Any]:
            if not any(command.raises for command in commands):
                return execute_once(client, commands, wait)
            self.step()
            answers = execute_once(client, commands, wait)
            self.step()
            return answers

        ShardClient.execute_once = stepping  # type: ignore[method-assign, assignment] # in this process alone


@dataclass
class ByteEnding:
    """Ends it inside a write to SQLite's log, which is torn: by the limit of a file's size.

    The kernel writes up to the limit, and ends whoever goes on [setrlimit(2)].
    """

    log: Path

    def arm(self, at: int) -> None:
        """Limit files; Python ignores the signal otherwise."""
        if at:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            limit_files(at * STRIDE)

    def places(self) -> int:
        """Return how often the log is cut."""
        return (self.log.stat().st_size - 1) // STRIDE


@dataclass(frozen=True)
class EndedWorker:
    """The answers of another process before it ended, and by which signal; 0: all was done."""

    answered: list[int]
    by: int
    places: int  # that it passed, if all was done


def ended_worker(work: Callable[[Reply], int]) -> EndedWorker:
    """Do some work in another process, whose answers are seen as they are given."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            places = work(lambda number: _send(writing, number))
            os.write(writing, bytes([DONE]) + places.to_bytes(4, "big"))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        answers, _, passed = file.read().partition(bytes([DONE]))
    _, status = os.waitpid(pid, 0)
    by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    assert by or passed, "the work failed"
    return EndedWorker(list(answers), by, int.from_bytes(passed, "big"))


def _send(writing: int, number: int) -> None:
    os.write(writing, bytes([number]))
