"""Two sides to compare: each some segments, a range of days, a series, or several of these.

A side is written in words: `arm:A` a segment, `2026-12-01..2026-12-31` a range (either end may be
left out), `series:FINGERPRINT` a definition.

Both sides show the same values. Whether a person may be on both decides how far their errors may be
correlated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation import IntervalTarget, MeanEstimate, NoReports, ShareEstimates
from veilcount_analysis.estimation.confidence_intervals import Counts, Floats
from veilcount_analysis.estimation.difference import correlation_of_figures, correlation_of_shares
from veilcount_analysis.estimation.proportions import SupportCounts
from veilcount_analysis.kinds.estimate_query import PAGE_SIZE, EstimateQuery, parse_segments
from veilcount_analysis.kinds.labels import Value, places_of, value_at, value_key
from veilcount_analysis.kinds.time_ranges import TimeRange, cells, time_range
from veilcount_analysis.mechanisms import estimate_shares, handler_of
from veilcount_analysis.query_params import parse_day
from veilcount_analysis.series.series import Series
from veilcount_shared.domain import Features, Number, OpenStrings

from .candidates import check_candidates
from .estimate import counters_of
from .query_checks import periods_of
from .snapshot import Snapshot

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
        if word.startswith("series:"):
            raise QueryError(name, word, "give 6 digits or more of a series' fingerprint")
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
        return replace(
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


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The same values on both sides; None: one mean. `picked`: for their estimated shares."""

    values: Sequence[Value | None]
    first: Counts | None = None
    second: Counts | None = None
    picked: bool = False


def pairs(a: SideData, b: SideData, query: EstimateQuery) -> Pairs:
    """Return the requested values, all of them, or the most frequent on both sides."""
    one, two = a.series.collection, b.series.collection
    if isinstance(one.domain, Features) or isinstance(two.domain, Features):
        raise QueryError("a", list(a.side.words), "several numbers are not compared: estimate both")
    if one.is_trend or two.is_trend:
        fix = "a state over time is compared by its estimates: estimate both"
        raise QueryError("a", list(a.side.words), fix)
    if isinstance(one.domain, Number) or isinstance(two.domain, Number):
        if isinstance(one.domain, Number) != isinstance(two.domain, Number):
            raise QueryError("b", list(b.side.words), "one side is of a number, the other is not")
        return Pairs([None])
    first, second = _common(a, b, query)
    if isinstance(one.domain, OpenStrings):
        named = check_candidates(one, query.values, "values").texts
        return Pairs(named, first, second)
    picked = not query.values and (query.top is not None or len(first) > PAGE_SIZE)
    if picked:
        most = _most_frequent(a, b, first, second)[: query.top or PAGE_SIZE]
        first, second = first[most], second[most]
    return Pairs([value_at(one, place) for place in first.tolist()], first, second, picked)


def _common(a: SideData, b: SideData, query: EstimateQuery) -> tuple[Counts, Counts]:
    """Return where the values that both sides have are, on each."""
    one, two = a.series.collection, b.series.collection
    if isinstance(one.domain, OpenStrings) and isinstance(two.domain, OpenStrings):
        return places_of(one, query.values).places, places_of(two, query.values).places
    if isinstance(one.domain, OpenStrings) or isinstance(two.domain, OpenStrings):
        raise QueryError("b", list(b.side.words), "one side is of open strings, the other is not")
    places = np.arange(one.domain.size)
    if query.values:
        places = places_of(one, query.values).places
    if one.domain == two.domain:
        return places, places
    known = {value_key(value_at(two, place)): place for place in range(two.domain.size)}
    keys = [value_key(value_at(one, place)) for place in places.tolist()]
    both = [place for place, key in enumerate(keys) if key in known]
    if not both:
        raise QueryError("b", list(b.side.words), "no value is possible on both sides")
    return places[both], np.array([known[keys[place]] for place in both], np.int64)


def _most_frequent(a: SideData, b: SideData, first: Counts, second: Counts) -> Counts:
    """Return the values' order by both sides' estimates, each weighted by its precision.

    This average is uncorrelated with the difference, so that picking by it leaves the differences
    of the picked values as they are. Picked by one side, its errors would be picked with them.
    """
    shares, precisions = zip(_precision(a, first), _precision(b, second), strict=True)
    average = (shares[0] * precisions[0] + shares[1] * precisions[1]) / sum(precisions)
    return np.argsort(-average, kind="stable")


def _precision(read: SideData, places: Counts) -> tuple[Floats, Floats]:
    found = side_shares(read)
    error = found.evidence.error(found.terms.target)
    return found.frequency[places], 1 / error[places] ** 2


def side_shares(read: SideData, level: float = 0.95, **options: Any) -> ShareEstimates:
    """Return the shares of a side that has reports; the options are those of `estimate_shares`."""
    collection = read.series.collection
    found = estimate_shares(
        collection, read.counters, level, contributions=read.contributions, **options
    )
    if isinstance(found, NoReports):
        raise ValueError(f"{collection.name}: no reports to compare")  # noqa: TRY004 - not its type
    return found


DISJOINT = "No person is on both sides: they are compared as independent samples."
POSSIBLE = (
    "The same persons may be on both sides: intervals and p allow for the worst correlation that"
    " their answers could have."
)
FIXED = (
    "The difference is between these answers, whoever gave them: only the randomization is"
    " uncertain, and it is independent on the two sides."
)


def may_share_persons(a: SideData, b: SideData) -> bool:
    """Return whether one person may have answered on both sides.

    Not within one series if a person gives one answer at most to all the periods of both: segments
    of one period, or a campaign that asks each person once.
    """
    if a.series.fingerprint != b.series.fingerprint:
        return True
    collection = a.series.collection
    periods = len(set(a.covered.periods) | set(b.covered.periods))
    return min(periods, collection.answering) * collection.per_period > 1


def worst_correlation(
    a: SideData,
    b: SideData,
    first: ShareEstimates | MeanEstimate,
    second: ShareEstimates | MeanEstimate,
) -> Floats | None:
    """Return the worst correlation of the two sides' errors; None: they are independent."""
    one, two = first.evidence, second.evidence
    targets = {first.terms.target, second.terms.target}
    if IntervalTarget.COHORT in targets or not may_share_persons(a, b):
        return None
    if isinstance(one, SupportCounts) and isinstance(two, SupportCounts):
        return correlation_of_shares(one, two)
    return correlation_of_figures(one, two, (_persons(a, first), _persons(b, second)))


def _persons(read: SideData, found: ShareEstimates | MeanEstimate) -> Floats:
    collection = read.series.collection
    handler = handler_of(collection.mechanism)
    return handler.persons_variance(collection.domain, found.evidence)


def persons_assumption(a: SideData, b: SideData, target: IntervalTarget) -> str:
    """Return in words what is assumed of the persons on both sides."""
    if target is IntervalTarget.COHORT:
        return FIXED
    return POSSIBLE if may_share_persons(a, b) else DISJOINT
