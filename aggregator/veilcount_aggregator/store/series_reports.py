"""Reports of one series in columns, verdicts as numbers, and the counters of the service.

The reports of many requests are coalesced: a group is judged and added up series by series. A
request has a report or two, and touching a column of it costs as much as one of a thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from veilcount_analysis.series.series import Series
from veilcount_shared.limits import PSEUDONYM_BYTES
from veilcount_shared.verdict import Verdict

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
Codes = NDArray[np.uint8]
Counters = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: verdicts by their code; the last is `HOURLY_FULL`
VERDICTS = (*Verdict, Verdict.FULL)
CODES = {verdict: np.uint8(code) for code, verdict in enumerate(Verdict)}
COUNTED = CODES[Verdict.COUNTED]
#: `full` by the quota of an hour, not by the period's limit
HOURLY_FULL = np.uint8(len(Verdict))

#: in place of a verdict: the report's shard failed, and whether it was counted is not known
UNDECIDED = np.uint8(255)

#: how much of a pseudonym is kept: two of 10^9 agree in it by chance once in 10^11 times
ROW_BYTES = 12
assert ROW_BYTES < PSEUDONYM_BYTES  # noqa: S101 - two constants that belong together


class Quota(NamedTuple):
    """How many new rows of a series one source may bring in one hour."""

    hour: int  # since 1970
    source: str
    limit: int


@dataclass(slots=True)  # a frozen one takes ten times as long to make: 1.5 us a series
class SeriesReports:
    """Reports of one series, in columns of one length; each message is one of its mechanism."""

    series: Series
    rows: Bytes  # (n, 12): the pseudonym's first bytes
    epochs: Numbers
    periods: Numbers
    segments: Numbers
    slots: Numbers
    messages: Bytes  # (n, width)
    default_verdicts: Codes  # the verdict if the slot is free; COUNTED: count it
    new_pseudonym_limit: int  # new rows that each period may have
    quota: Quota | None = None  # None: no limit by the hour

    def __len__(self) -> int:
        return len(self.rows)


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
    members: dict[tuple[str, int, Quota | None], list[int]] = {}
    for place, part in enumerate(group):
        limits = (part.series.fingerprint, part.new_pseudonym_limit, part.quota)
        members.setdefault(limits, []).append(place)
    return [
        CoalescedReports(concatenate_reports([group[place] for place in places]), places)
        for places in members.values()
    ]


COLUMNS = ("rows", "epochs", "periods", "segments", "slots", "messages", "default_verdicts")


def concatenate_reports(group: Sequence[SeriesReports]) -> SeriesReports:
    """Return the reports of some members, all of one series, as one, under the first's limits."""
    if len(group) == 1:
        return group[0]
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in group]) for name in COLUMNS
    }
    return replace(group[0], **joined)


class ServiceCounter(NamedTuple):
    """The name of a counter: of a verdict, a loss or a request."""

    what: str
    fingerprint: str  # "": of no series
    period: int  # -1: of no period
    word: str


ServiceCounts = Mapping[ServiceCounter, int]

#: counted by the engines for each report that was not counted
VERDICT = "verdict"
LOG_RESTORED = "log restored"  # of a SQLite store, by what notices that it was removed
#: a report that was answered `full` by another limit than its period's, and by which
LIMITED = "limited"
BY_HOUR = "hour"


def refusal_counts(
    fingerprint: str, period: int, code: int, times: int
) -> dict[ServiceCounter, int]:
    """Return the counters of reports that were not counted."""
    counts = {ServiceCounter(VERDICT, fingerprint, period, VERDICTS[code]): times}
    if code == HOURLY_FULL:
        counts[ServiceCounter(LIMITED, fingerprint, -1, BY_HOUR)] = times
    return counts
