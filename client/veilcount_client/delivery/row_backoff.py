"""Backoff per row: when a row that failed is tried again depends on its own failures only.

A row is what the aggregator knows of a person under one pseudonym. Were a device's rows to wait
together, a server could tell them by their silence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from threading import Lock

from veilcount_shared import RandomSource

from ..state import QueuedReport
from . import backoff
from .body_packing import Row, row_of

FURTHEST = 8 * 86_400.0  # further ahead than any failure puts a report off


class RowBackoff:
    """Remembers which rows wait, and how often in succession nobody can have read their reports."""

    def __init__(self, randomness: RandomSource, *, persons: bool) -> None:
        """Begin with no row waiting."""
        self._randomness, self._persons = randomness, persons
        self.after_fork()

    def after_fork(self) -> None:
        """Begin anew in a child: what waits is the parent's."""
        self._lock = Lock()
        self._due: dict[Row, float] = {}
        self._unsent: dict[Row, int] = {}

    def fail(
        self, queued_reports: Iterable[QueuedReport], now: float, after: float, *, seen: bool
    ) -> dict[int, float]:
        """Return when each of these reports, which did not get through, is tried again.

        The rows of one body of many persons stay together: they are of as many persons.
        """
        rows: dict[Row | None, list[QueuedReport]] = defaultdict(list)
        for queued_report in queued_reports:
            rows[None if self._persons else row_of(queued_report)].append(queued_report)
        times: dict[int, float] = {}
        for row, those in rows.items():
            due = now + after + self._wait(row, max(each.tries for each in those), seen=seen)
            times |= {each.number: due for each in those}
            if row is not None:
                with self._lock:
                    self._due[row] = due
        return times

    def succeed(self, queued_reports: Iterable[QueuedReport]) -> None:
        """Forget the failures of rows that got through."""
        with self._lock:
            for row in {row_of(queued_report) for queued_report in queued_reports}:
                self._due.pop(row, None)
                self._unsent.pop(row, None)

    def waiting(self, queued_reports: Iterable[QueuedReport], now: float) -> dict[int, float]:
        """Return those of these reports whose row waits, each with the row's time."""
        with self._lock:
            # A time beyond any was set by a clock that was ahead.
            self._due = {row: due for row, due in self._due.items() if 0 < due - now <= FURTHEST}
            rows = {each.number: row_of(each) for each in queued_reports}
            return {number: self._due[row] for number, row in rows.items() if row in self._due}

    def _wait(self, row: Row | None, attempts: int, *, seen: bool) -> float:
        """Return how long to wait: what nobody has read may be tried again soon, and often."""
        if row is None:
            return backoff.delay(attempts, self._randomness)
        if seen:
            return backoff.spaced_delay(attempts, self._randomness)
        with self._lock:
            self._unsent[row] = self._unsent.get(row, 0) + 1
            return backoff.delay(self._unsent[row], self._randomness)
