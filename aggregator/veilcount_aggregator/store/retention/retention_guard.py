"""Retention under guard: when a process may drop epochs, and what it waits for otherwise.

Rows are dropped by a day, so a wrong day destroys. A process acts on a day only if its clock has
agreed for a quarter of an hour (`ClockGuard.sound_seconds`), and the day is at most two beyond the
last one that is on record in the store. Where more days seem to have passed (a host that was off
for long, a backup that was restored, a clock that is wrong) retention waits: until a process has
run for 24 hours at that time, or the operator confirms it (`veilcount store confirm-clock`).

While it waits, a report that is stale by the unconfirmed day alone is not judged: it comes back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from veilcount_analysis.series.series import Series, utc_day
from veilcount_shared.periods import RECOVERABLE

from ...errors import StoreError
from ..interface import IntakeStore, Record, RecordStore, Store
from ..records import update_records
from ..series_reports import ServiceCounter
from .clock_guard import SETTLING_SECONDS, Clock, ClockGuard, ClockState

KIND = "retention"
KEY = "clock"
#: what is counted of it, over all workers
DROPPED = ServiceCounter("retention", "", -1, "dropped")
#: a day in which nothing ran (a night, a long upgrade) needs no confirmation
LONGEST_STEP = timedelta(days=2)
CONFIRMING_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class ConfirmedDay:
    """The latest day on which the clock was good enough to drop by, and when that was found."""

    day: date
    at: str  # to the second, UTC

    def record(self) -> Record:
        """Return it as a record."""
        return Record(KIND, KEY, json.dumps({"day": self.day.isoformat(), "at": self.at}).encode())

    @classmethod
    def at_instant(cls, now: datetime) -> ConfirmedDay:
        """Return the confirmation of an instant's day."""
        return cls(utc_day(now), now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))

    @property
    def until(self) -> date:
        """Return the last day that needs no further confirmation."""
        return self.day + LONGEST_STEP


def read_confirmed_day(store: RecordStore) -> ConfirmedDay | None:
    """Return the day that is on record; None: there never was one."""
    record = store.records(KIND).get(KEY)
    if record is None:
        return None
    read = json.loads(record)
    return ConfirmedDay(date.fromisoformat(read["day"]), read["at"])


def needs_confirmation(found: ConfirmedDay | None, day: date) -> bool:
    """Whether a day has to be confirmed before epochs are dropped by it."""
    return found is None or day > found.until


class RetentionGuard:
    """The retention of one process: one thread looks and runs, any thread may read."""

    def __init__(self, store: Store, guard: ClockGuard, clock: Clock) -> None:
        self._store = store
        self._guard = guard
        self._clock = clock
        self._found: ConfirmedDay | None = None
        self._looked = False

    @property
    def waiting(self) -> bool:
        """Whether it waits for this host's day to be confirmed."""
        return self._looked and needs_confirmation(self._found, utc_day(self._clock()))

    def sure(self, day: date) -> date:
        """Return the latest day that may be judged by: this one, unless it is to be confirmed."""
        return day if self._found is None else min(day, self._found.until)

    def look(self, series: Collection[Series]) -> None:
        """Compare the clocks, and look at what is on record; a store that is away changes nothing.

        A store that holds nothing yet has nothing to lose: its first day is confirmed at once.
        """
        reading = self._guard.look()
        with suppress(StoreError):
            self._found, self._looked = read_confirmed_day(self._store), True
            day = utc_day(self._clock())
            new = self._found is None and not any(map(self._store.new_pseudonyms, series))
            long_enough = self._guard.sound_seconds >= CONFIRMING_SECONDS
            if reading.state is ClockState.AGREES and (
                new or (long_enough and needs_confirmation(self._found, day))
            ):
                self._keep()

    def run(self, series: Collection[Series]) -> int:
        """Drop what is over, if the clock is good for it; return how many epochs were dropped."""
        self.look(series)
        # What is on record has to be known: without it, no day waits for anything.
        if self._guard.sound_seconds < SETTLING_SECONDS or self.waiting or not self._looked:
            return 0
        if self._found is None or self._found.day != utc_day(self._clock()):
            self._keep()  # also an earlier day: later ones have to be confirmed again
        return drop_ended_epochs(self._store, series, self._clock())

    def _keep(self) -> None:
        confirmed_day = ConfirmedDay.at_instant(self._clock())
        update_records(self._store, lambda: ([confirmed_day.record()], None))
        self._found = confirmed_day


def drop_ended_epochs(store: IntakeStore, all_series: Iterable[Series], now: datetime) -> int:
    """Drop the epochs that have ended, and make older drops final; return how many were dropped."""
    return _sum_over(all_series, lambda series: _drop_series(store, series, now))


def delete_rows(store: IntakeStore, all_series: Iterable[Series]) -> bool:
    """Delete some rows of the final drops of each series; return whether there are more.

    No clock is asked: what is final was decided when a clock was good enough.
    """
    return _sum_over(all_series, store.delete_rows) > 0


def _sum_over(all_series: Iterable[Series], act: Callable[[Series], int]) -> int:
    """Add up an action's results; an error in one series is raised after all others were done."""
    total, errors = 0, []
    for series in all_series:
        try:
            total += act(series)
        except StoreError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return total


def _drop_series(store: IntakeStore, series: Series, now: datetime) -> int:
    over = epochs_over(series, utc_day(now))
    if not over:
        return 0
    try:
        due = datetime.combine(series.due(over - 1), time(), UTC)
        return store.mark_dropped(series, over, due, now)
    finally:
        store.finalize_dropped(series, RECOVERABLE, now)


def epochs_over(series: Series, day: date) -> int:
    """Return how many epochs of a series have ended on a UTC day."""
    epochs = 1 if series.linked else series.collection.periods
    return next((epoch for epoch in range(epochs) if not series.over(epoch, day)), epochs)
