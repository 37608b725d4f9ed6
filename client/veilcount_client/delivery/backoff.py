"""Backoff: from failed attempts to the seconds before the next one, for each row alone.

Full jitter: uniform between 0 and an exponentially growing ceiling, so that devices do not come
back in step after an outage. A row is what the aggregator knows of a person under one pseudonym.
Were a device's rows to wait together, a server could tell them by their silence.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Iterable
from email.utils import parsedate_to_datetime

from veilcount_shared import RandomSource

from ..state import QueuedReport
from .padded_bodies import Row, row_of

FIRST = 5.0
LONGEST = 3600.0
# What a server requests is rounded up to one of these. One that drew another delay for each
# request would recognize by it, when they come back, which of them are one device's.
RETRY_DELAYS = (0.0, 60.0, 300.0, 900.0, 3600.0)
LONGEST_RETRY_DELAY = RETRY_DELAYS[-1]
SPACED_CEILINGS = (4 * 3600.0, 2 * 86_400.0, 7 * 86_400.0)
GRAIN = 1000


def delay(failures: int, randomness: RandomSource) -> float:
    """Return how many seconds to wait after so many failures in a row."""
    ceiling = min(FIRST * (1 << min(failures - 1, 30)), LONGEST)
    return ceiling * randomness.below(GRAIN + 1) / GRAIN


def spaced_delay(attempts: int, randomness: RandomSource) -> float:
    """Return how many seconds to wait after so many attempts of which the server has read the body.

    Each reveals an instant at which the device ran, and a few instants identify a device. So a
    server that counts nothing receives a row three or four times in a week, not every hour.
    """
    ceiling = SPACED_CEILINGS[min(max(attempts, 1), len(SPACED_CEILINGS)) - 1]
    return ceiling * randomness.below(GRAIN + 1) / GRAIN


def retry_after(header: str | None, now: float) -> float:
    """Return one of `RETRY_DELAYS` for a Retry-After header, a number or a date."""
    seconds = _seconds(header or "", now)
    return next(
        (retry_delay for retry_delay in RETRY_DELAYS if seconds <= retry_delay), LONGEST_RETRY_DELAY
    )


def _seconds(header: str, now: float) -> float:
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - now
        except (ValueError, OverflowError):
            return 0.0
    return 0.0 if math.isnan(seconds) else seconds


FURTHEST = 8 * 86_400.0  # further ahead than any failure puts a report off


class RowBackoff:
    """Remembers which rows wait, and how often in succession nobody can have read their reports."""

    def __init__(self, randomness: RandomSource, *, persons: bool) -> None:
        """Begin with no row waiting."""
        self._randomness, self._persons = randomness, persons
        self.after_fork()

    def after_fork(self) -> None:
        """Begin anew in a child: what waits is the parent's."""
        self._lock = threading.Lock()
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
        for row, row_reports in rows.items():
            due = (
                now
                + after
                + self._wait(row, max(report.tries for report in row_reports), seen=seen)
            )
            times |= {report.number: due for report in row_reports}
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
            rows = {queued_report.number: row_of(queued_report) for queued_report in queued_reports}
            return {number: self._due[row] for number, row in rows.items() if row in self._due}

    def _wait(self, row: Row | None, attempts: int, *, seen: bool) -> float:
        """Return how long to wait: what nobody has read may be tried again soon, and often."""
        if row is None:
            return delay(attempts, self._randomness)
        if seen:
            return spaced_delay(attempts, self._randomness)
        with self._lock:
            self._unsent[row] = self._unsent.get(row, 0) + 1
            return delay(self._unsent[row], self._randomness)
