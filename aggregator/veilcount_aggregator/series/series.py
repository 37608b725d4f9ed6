"""A series: what is collected under one fingerprint; which of its periods take reports today."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from veilcount_shared import Collection
from veilcount_shared.collection import Linkage
from veilcount_shared.schedule import period_end, period_start

#: an epoch's spent slots outlive `late` by so many days: a clock that is set back finds them
GRACE = timedelta(days=1)
#: rows of a dropped epoch stay for so long: with them a drop by a wrong clock can be undone
RECOVERABLE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Series:
    """One definition that was loaded once, and is known for ever."""

    collection: Collection
    closed: bool = False
    _ages: dict[date, tuple[int, int]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def fingerprint(self) -> str:
        """Its name in every report and every store."""
        return self.collection.fingerprint

    @property
    def linked(self) -> bool:
        """Whether one epoch is the whole campaign."""
        return self.collection.linkage is Linkage.COLLECTION

    @property
    def bits(self) -> int:
        """How many slots an epoch has: the length of its bitmaps."""
        return self.collection.slots

    @property
    def most(self) -> int:
        """How many of an epoch's slots one pseudonym may spend: the cap the server enforces."""
        if not self.linked:
            return self.collection.slots
        return self.collection.answering * self.collection.per_period

    @property
    def counters(self) -> int:
        """How many counters its tallies have."""
        return self.collection.mechanism.counters

    def epoch(self, period: int) -> int:
        """Return the epoch of a period."""
        return 0 if self.linked else period

    def periods(self, epoch: int) -> range:
        """Return the periods of an epoch."""
        return range(self.collection.periods) if self.linked else range(epoch, epoch + 1)

    def taken(self, day: date) -> tuple[int, int]:
        """Return the oldest and the newest period that take reports on a UTC day.

        Periods begin and end at midnight and `late` is in days, so a day decides.
        """
        found = self._ages.get(day)
        if found is None:
            found = self._taken(day)
            self._ages.clear()  # only ever one day is asked for; at midnight, for a moment, two
            self._ages[day] = found
        return found

    def _taken(self, day: date) -> tuple[int, int]:
        late = timedelta(days=self.collection.late)
        every = range(self.collection.periods)
        oldest = bisect_left(every, True, key=lambda period: self._closes(period) + late > day)
        newest = bisect_left(every, True, key=lambda period: self._opens(period) > day) - 1
        return oldest, newest

    def over(self, epoch: int, day: date) -> bool:
        """Whether an epoch's spent slots may be dropped: none of its periods takes reports."""
        return self.due(epoch) <= day

    def due(self, epoch: int) -> date:
        """Return the first UTC day on which an epoch may be dropped."""
        last = self.periods(epoch)[-1]
        return self._closes(last) + timedelta(days=self.collection.late) + GRACE

    def _opens(self, period: int) -> date:
        return period_start(self.collection, period).date()

    def _closes(self, period: int) -> date:
        return period_end(self.collection, period).date()


def utc_day(now: datetime) -> date:
    """Return the UTC day of an instant."""
    return now.astimezone(UTC).date()
