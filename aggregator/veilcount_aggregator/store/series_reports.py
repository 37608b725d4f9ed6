"""Reports of series in columns, verdicts as numbers, and the counters of the service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from operator import attrgetter
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


class SeriesPart(NamedTuple):
    """The reports of one series in a table, and what their new rows are charged to."""

    series: Series
    rows: slice
    quota: Quota | None = None  # None: no limit by the hour


@dataclass(slots=True)
class SeriesReports:
    """Reports of some series as one table, divided into its parts; each message is a valid one.

    All messages have one width. Many series are one table: touching a column of each would cost
    more than all that is done with its report or two.
    """

    parts: Sequence[SeriesPart]  # one after the other, none empty
    rows: Bytes  # (n, 12): the pseudonym's first bytes
    epochs: Numbers
    periods: Numbers
    segments: Numbers
    slots: Numbers
    messages: Bytes  # (n, width)
    default_verdicts: Codes  # the verdict if the slot is free; COUNTED: count it
    limits: Numbers  # new rows that the period of each may have

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of_one(
        cls,
        series: Series,
        *,
        new_pseudonym_limit: int,
        quota: Quota | None = None,
        **columns: NDArray[Any],
    ) -> SeriesReports:
        """Return reports of one series, all with one limit."""
        size = len(columns["rows"])
        limits = np.full(size, new_pseudonym_limit)
        return cls([SeriesPart(series, slice(0, size), quota)], **columns, limits=limits)


@dataclass(frozen=True, slots=True)
class CoalescedReports:
    """The members of a group whose messages have one width, as one table in the group's order.

    So all reports of a series are in one table.
    """

    reports: SeriesReports
    places: list[int]  # members of the group

    def members(self, group: Sequence[SeriesReports], codes: Codes) -> Iterator[tuple[int, Codes]]:
        """Yield each member's place and its verdicts."""
        first = 0
        for place in self.places:
            size = len(group[place])
            yield place, codes[first : first + size]
            first += size


def coalesce(group: Sequence[SeriesReports]) -> list[CoalescedReports]:
    """Return a group as a table for each width of messages."""
    members: dict[int, list[int]] = {}
    for place, reports in enumerate(group):
        members.setdefault(reports.messages.shape[1], []).append(place)
    return [
        CoalescedReports(join_reports([group[place] for place in places]), places)
        for places in members.values()
    ]


def join_reports(group: Sequence[SeriesReports]) -> SeriesReports:
    """Return reports whose messages have one width as one table."""
    if len(group) == 1:  # nearly always
        return group[0]
    firsts = accumulate(map(len, group), initial=0)
    parts = [
        part._replace(rows=slice(first + part.rows.start, first + part.rows.stop))
        for first, reports in zip(firsts, group, strict=False)
        for part in reports.parts
    ]
    return SeriesReports(parts, *(np.concatenate(list(map(column, group))) for column in _COLUMNS))


_COLUMNS = [attrgetter(column.name) for column in fields(SeriesReports)][1:]


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
