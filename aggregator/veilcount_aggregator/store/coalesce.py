"""Coalesce the reports of many requests: a group is judged and added up series by series.

A request has a report or two, and touching a column of it costs as much as one of a thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .memory_limit import MemoryLimits
from .series_reports import Codes, Quota, SeriesReports


@dataclass(frozen=True, slots=True)
class CoalescedReports:
    """The reports of one series and one set of limits in a group, in the group's order."""

    reports: SeriesReports
    places: list[int]  # members of the group

    def parts(self, group: Sequence[SeriesReports], codes: Codes) -> Iterator[tuple[int, Codes]]:
        """Yield each member's place and its verdicts."""
        first = 0
        for place in self.places:
            size = len(group[place])
            yield place, codes[first : first + size]
            first += size


def coalesce(group: Sequence[SeriesReports]) -> list[CoalescedReports]:
    """Return a group with one member a series."""
    members: dict[tuple[str, int, Quota | None, MemoryLimits], list[int]] = {}
    for place, each in enumerate(group):
        limits = (each.series.fingerprint, each.new_pseudonym_limit, each.quota, each.memory)
        members.setdefault(limits, []).append(place)
    return [
        CoalescedReports(concatenate_reports([group[place] for place in places]), places)
        for places in members.values()
    ]


def concatenate_reports(group: Sequence[SeriesReports]) -> SeriesReports:
    """Return the reports of some members, all of one series, as one, under the first's limits."""
    if len(group) == 1:
        return group[0]
    return replace(
        group[0],
        rows=np.concatenate([each.rows for each in group]),
        epochs=np.concatenate([each.epochs for each in group]),
        periods=np.concatenate([each.periods for each in group]),
        segments=np.concatenate([each.segments for each in group]),
        slots=np.concatenate([each.slots for each in group]),
        messages=np.concatenate([each.messages for each in group]),
        default_verdicts=np.concatenate([each.default_verdicts for each in group]),
    )
