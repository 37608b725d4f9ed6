"""How many new pseudonyms a period has brought, against the room that it has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from veilcount_shared.schedule import period_start

from ...series.series import Series
from ...store import Store
from ...text.privacy_guarantees import counts_are_public

NEARLY = 0.8
LATEST = 3  # periods of a series that are listed


@dataclass(frozen=True, slots=True)
class Room:
    """One period's."""

    name: str
    begins: str
    fresh: int
    room: int

    @property
    def tight(self) -> bool:
        """Whether it may soon be full."""
        return self.fresh >= NEARLY * self.room


def rooms(store: Store, series: Iterable[Series], room: int, today: date) -> list[Room]:
    """Return the latest periods of all that take reports, the fullest first.

    Who came is a count of persons: it is told only where counts are public.
    """
    found = [
        each
        for one in series
        if counts_are_public(one.collection) and not one.closed
        for each in _latest(store, one, room, today)
    ]
    return sorted(found, key=lambda each: (-each.fresh, each.name, each.begins))


def _latest(store: Store, series: Series, room: int, today: date) -> Iterator[Room]:
    oldest, newest = series.taken(today)
    fresh = store.new_pseudonyms(series)
    for period in range(max(oldest, newest - LATEST + 1), newest + 1):
        if period in fresh:
            begins = period_start(series.collection, period).date()
            yield Room(series.collection.name, str(begins), fresh[period], room)
