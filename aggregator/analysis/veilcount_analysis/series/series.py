"""A series: what is collected under one fingerprint; which of its periods take reports today."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency, Linkage
from veilcount_shared.periods import GRACE, period_number
from veilcount_shared.schedule import period_end
from veilcount_shared.tokens import PublicKey

from .hash_counts import DENSE_LIMIT


@dataclass(frozen=True, slots=True)
class Series:
    """One definition that was loaded once, and is known for ever."""

    collection: Collection
    closed: bool = False
    token_keys: tuple[PublicKey, ...] = ()  # one a period, where reports have tokens

    @property
    def fingerprint(self) -> str:
        """Its name in every report and every store."""
        return self.collection.fingerprint

    @property
    def has_tokens(self) -> bool:
        """Whether each report has a token, which only its period's key can have signed."""
        return self.collection.linkage is Linkage.TOKEN

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
        return self.collection.answering * self.collection.per_day

    @property
    def counters(self) -> int:
        """How many counters its tallies have."""
        return self.collection.mechanism.counters

    @property
    def counts_hashes(self) -> bool:
        """Whether a tally holds the hashes that occurred, and no counter for each place."""
        return self.counters > DENSE_LIMIT

    def epoch(self, period: int) -> int:
        """Return the epoch of a period."""
        return 0 if self.linked else period

    def periods(self, epoch: int) -> range:
        """Return the periods of an epoch."""
        return range(self.collection.periods) if self.linked else range(epoch, epoch + 1)

    def open_periods(self, day: date) -> tuple[int, int]:
        """Return the oldest and the newest period that take reports on a UTC day.

        Periods begin and end at midnight and `late` is in days, so a day decides. The oldest is the
        number of periods where all have closed, the newest -1 where none has begun.
        """
        oldest = self._period(day - timedelta(days=self.collection.late))
        return max(oldest, 0), min(self._period(day), self.collection.periods - 1)

    def _period(self, day: date) -> int:
        """Return the period of a day: -1 before the campaign, the number of periods after it."""
        collection = self.collection
        if day < collection.start:
            return -1
        if day >= collection.until:
            return collection.periods
        return period_number(collection.unit, collection.start, day)

    def over(self, epoch: int, day: date) -> bool:
        """Whether an epoch's spent slots may be dropped: none of its periods takes reports."""
        return self.due(epoch) <= day

    def due(self, epoch: int) -> date:
        """Return the first UTC day on which an epoch may be dropped."""
        last = self.periods(epoch)[-1]
        end = period_end(self.collection, last).date()
        return end + timedelta(days=self.collection.late) + GRACE


def utc_day(now: datetime) -> date:
    """Return the UTC day of an instant."""
    return now.astimezone(UTC).date()


def publishes_n(collection: Collection) -> bool:
    """Whether the exact number of answers may leave: of all periods at once, or of none, ever.

    Only under substitution, and where each person is asked for exactly one answer in every period:
    then substituting a person's value changes no period's number. Where persons may come or go, or
    are asked several times a period, or in some periods only, a number reveals whether, or how
    often, a person answered.
    """
    once = collection.per_day == 1 and collection.answering == collection.periods
    return collection.adjacency is Adjacency.SUBSTITUTE and once
