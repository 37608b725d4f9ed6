"""Two sides to compare: each some segments, a range of days, a series, or several of these.

A side is written in words: `arm:A` a segment, `2026-12-01..2026-12-31` a range (either end may be
left out), `series:FINGERPRINT` a definition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

import msgspec

from ..errors import QueryError
from ..estimation.confidence_intervals import Counts
from ..series.series import Series
from .estimate import counters_of, periods_of
from .estimate_query import EstimateQuery, parse_segments
from .query_params import parse_day
from .segment_cells import cells
from .snapshot import Snapshot
from .time_ranges import TimeRange, time_range

FIX = "give a segment (arm:A), a range (2026-12-01..2026-12-31) or a series (series:FINGERPRINT)"
_SERIES = re.compile(r"series:([0-9a-f]{6,64})")


@dataclass(frozen=True, slots=True)
class Side:
    """What distinguishes one side from the common selection."""

    words: tuple[str, ...]
    first: date | None = None
    last: date | None = None
    segments: tuple[tuple[str, str], ...] = ()
    series: str = ""

    @classmethod
    def parse(cls, name: str, words: Sequence[str]) -> Side:
        """Return the side that these words describe."""
        if not words:
            raise QueryError(name, None, FIX)
        side = cls(tuple(words))
        for word in words:
            side = side.with_word(name, word)
        return side

    def with_word(self, name: str, word: str) -> Side:
        """Return the side with one more word."""
        if found := _SERIES.fullmatch(word):
            return replace(self, series=found[1])
        if ".." in word:
            first, _, last = word.partition("..")
            return replace(
                self,
                first=parse_day(name, first) if first else None,
                last=parse_day(name, last) if last else None,
            )
        if ":" not in word:
            raise QueryError(name, word, FIX)
        return replace(self, segments=(*self.segments, *parse_segments(name, [word])))

    @property
    def label(self) -> str:
        """The name of the side in sentences."""
        return ", ".join(word[:19] if word.startswith("series:") else word for word in self.words)

    def within(self, common: EstimateQuery) -> EstimateQuery:
        """Return the query of this side's estimate."""
        mine = dict(self.segments)
        return msgspec.structs.replace(
            common,
            first=self.first or common.first,
            last=self.last or common.last,
            segments=tuple((dict(common.segments) | mine).items()),
            series=(self.series,) if self.series else common.series,
        )


@dataclass(frozen=True, slots=True, eq=False)
class SideData:
    """A side with its series, time range and counters."""

    side: Side
    query: EstimateQuery
    series: Series
    covered: TimeRange
    cells: tuple[int, ...]
    counters: Counts

    @classmethod
    def load(cls, snapshot: Snapshot, side: Side, query: EstimateQuery, series: Series) -> SideData:
        """Read the counters of a side."""
        periods = periods_of(snapshot, series, query)
        where = cells(series.collection, query.segments)
        return cls(
            side,
            query,
            series,
            time_range(series, periods, snapshot.today),
            tuple(where),
            counters_of(snapshot, series, periods, where),
        )

    @property
    def contributions(self) -> int:
        """The largest number of its reports that one person may have sent."""
        return self.covered.contributions(self.series.collection)


def refuse_overlap(first: SideData, second: SideData) -> None:
    """Refuse sides that share reports: the error of their difference is not estimated."""
    if first.series.fingerprint != second.series.fingerprint:
        return
    periods = set(first.covered.periods) & set(second.covered.periods)
    if periods and set(first.cells) & set(second.cells):
        raise QueryError("b", list(second.side.words), "it shares reports with a: give another")
