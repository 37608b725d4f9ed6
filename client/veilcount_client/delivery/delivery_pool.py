"""A pool of threads that deliver in parallel, and the bodies that they have under way.

One thread would be enough for the work. But a server that drips its reply to one pseudonym
would then receive no other pseudonym of the device meanwhile, and so exclude all that do arrive.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass

from ..state import Outbox, QueuedReport

MOST_THREADS = 16

Task = Callable[[], None]


class DeliveryPool:
    """Runs tasks in a few daemon threads, which end when idle; or in the caller's thread."""

    def __init__(
        self,
        *,
        threaded: bool,
        finished: Task = lambda: None,
        failed: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        """Start no thread yet. `finished` is called after each task, `failed` with its error."""
        self._threaded, self._finished, self._failed = threaded, finished, failed
        self.after_fork()

    def after_fork(self) -> None:
        """Begin anew in a child: the threads, and what they do, are the parent's."""
        self._lock = threading.Lock()
        self._tasks: deque[Task] = deque()
        self._threads = 0

    @property
    def is_busy(self) -> bool:
        """Whether any task waits or runs."""
        return self._threads > 0

    def submit(self, task: Task) -> None:
        """Run a task as soon as a thread is free."""
        if not self._threaded:
            self._run(task)
            return
        with self._lock:
            self._tasks.append(task)
            if self._threads == MOST_THREADS:
                return
            self._threads += 1
        try:
            threading.Thread(target=self._work, name="veilcount-send", daemon=True).start()
        except RuntimeError:  # the interpreter goes down, and starts no thread any more
            self._work()

    def _work(self) -> None:
        while (task := self._next()) is not None:
            self._run(task)

    def _next(self) -> Task | None:
        with self._lock:
            if self._tasks:
                return self._tasks.popleft()
            self._threads -= 1
        self._finished()
        return None

    def _run(self, task: Task) -> None:
        try:
            task()
        except Exception as error:  # noqa: BLE001 - in a thread of ours: its lease ends by itself
            self._failed(error)
        self._finished()


@dataclass(eq=False)
class Body:
    """Reports that leave together, and the outbox that they came from."""

    outbox: Outbox
    queued_reports: list[QueuedReport]
    leased_until: float


class BodiesInFlight:
    """Bodies from their lease to their outcome, as several threads see them."""

    def __init__(self) -> None:
        """Begin with nothing under way."""
        self.after_fork()

    def after_fork(self) -> None:
        """Begin anew in a child: what is under way is the parent's."""
        self._lock = threading.Lock()
        self._bodies: list[Body] = []
        self.leaving = False  # once everything was given back: what replies now is stored nowhere

    def __contains__(self, body: object) -> bool:
        return body in self._bodies

    def begin(self, lease: Callable[[], list[Body]]) -> list[Body]:
        """Return bodies that are now leased, and none if nothing would be sent soon."""
        with self._lock:
            if self.leaving or len(self._bodies) > MOST_THREADS:
                return []
            leased = lease()
            self._bodies += leased
            return leased

    def end(self, body: Body) -> None:
        """Forget a body, unless it was returned meanwhile."""
        with self._lock, suppress(ValueError):
            self._bodies.remove(body)

    def discard(self, person: bytes, series: Container[str]) -> None:
        """Take a person's reports of these series out of what has not left yet."""
        with self._lock:
            for body in self._bodies:
                body.queued_reports = [
                    queued_report
                    for queued_report in body.queued_reports
                    if queued_report.person != person
                    or queued_report.report.fingerprint not in series
                ]

    def give_back(self) -> list[Body]:
        """Return everything under way; from now on nothing begins."""
        with self._lock:
            self.leaving = True
            bodies, self._bodies = self._bodies, []
        return bodies
