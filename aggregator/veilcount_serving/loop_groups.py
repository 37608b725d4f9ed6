"""Groups of requests that arrive on an event loop: the loop gathers, and a thread takes each group.

While a group is written the loop sleeps, as long as a commit mostly takes: it would only read what
has to wait anyway, and its thread would contend with the other one for the interpreter. A commit
that takes longer is looked for now and then, and the loop goes on. If the last group had more than
one request, the loop sleeps before the next one, too: many devices send at once, or none does.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from functools import partial
from queue import SimpleQueue

from .group_commit import GroupCommit, Outcome, Request

GATHER_SECONDS = 0.001
SLEEP_SECONDS = 0.02  # at most, for a group under way
POLL_SECONDS = 0.005


class LoopGroups(GroupCommit[Request, Outcome]):
    """The requests that wait on one event loop; submitted and delivered there."""

    _jobs: SimpleQueue[list[Request]]
    _done: threading.Semaphore
    _settled: Sequence[tuple[Request, Outcome]] = ()
    _is_scheduled = False
    _last = 1

    def _start_or_wake(self) -> None:
        if self._thread is None:
            self._jobs, self._done = SimpleQueue(), threading.Semaphore(0)
            self._thread = threading.Thread(target=self._run, name="veilcount-intake", daemon=True)
            self._thread.start()
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self._gather if self._last > 1 else self._hand_over)

    def _gather(self) -> None:
        """Sleep while requests arrive, and have the loop read them first."""
        time.sleep(GATHER_SECONDS)
        self._loop.call_soon(partial(self._loop.call_soon, self._hand_over))

    def _hand_over(self) -> None:
        group = self._next_group()
        self._last = len(group) + self.waiting
        self._jobs.put(group)
        self._finish(SLEEP_SECONDS)

    def _finish(self, seconds: float) -> None:
        """Deliver what the group gets, once it is there."""
        if not self._done.acquire(timeout=seconds):
            self._loop.call_later(POLL_SECONDS, self._finish, 0.0)
            return
        settled, self._settled = self._settled, ()
        self._deliver(settled)
        self._is_scheduled = False
        if self.waiting:
            self._start_or_wake()

    def _run(self) -> None:
        while True:
            self._take(self._jobs.get())

    def _settle(self, settled: Sequence[tuple[Request, Outcome]]) -> None:
        self._settled = settled
        self._done.release()
