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
from veilcount_analysis.estimation import IntervalTarget, MeanEstimate, ShareEstimates
from veilcount_analysis.estimation.confidence_intervals import Counts, Floats
from veilcount_analysis.estimation.difference import correlation_of_figures, correlation_of_shares
from veilcount_analysis.estimation.proportions import SupportCounts
from veilcount_analysis.kinds.comparison import Comparison
from veilcount_analysis.kinds.estimate import refuse_covers
from veilcount_analysis.kinds.estimate_query import PAGE_SIZE, EstimateQuery, parse_segments
from veilcount_analysis.kinds.kind import Kind
from veilcount_analysis.kinds.labels import Value
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.kinds.source import Source, Tally
from veilcount_analysis.kinds.time_ranges import TimeRange
from veilcount_analysis.kinds.values import side_shares
from veilcount_analysis.query_params import parse_day
from veilcount_analysis.series.series import Series

from .estimate import RequestedSeries

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
        if match := _SERIES.fullmatch(word):
            return replace(self, series=match[1])
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
    tally: Tally
    source: Source

    @classmethod
    def load(cls, side: Side, query: EstimateQuery, request: RequestedSeries) -> SideData:
        """Read the counters of a side."""
        scope = request.scope
        tally = request.source.tally(scope.whole.periods, scope.cells)
        return cls(side, query, request.series, scope.whole, scope.cells, tally, request.source)

    @property
    def reports(self) -> int:
        """How many reports of devices it has."""
        return self.kind.handler.report_count(self.tally.counters) - self.tally.covers

    @property
    def kind(self) -> Kind[Any, Any]:
        """Its kind of question."""
        return kind_of(self.series.collection)

    def comparison(self, name: str) -> Comparison:
        """Return how it is compared as side `name`, or refuse it."""
        comparison = self.kind.comparison
        if isinstance(comparison, str):
            raise QueryError(name, list(self.side.words), comparison)
        return comparison

    def estimate(self, name: str, places: Counts | None) -> ShareEstimates | MeanEstimate:
        """Return its estimate as side `name`, of some values."""
        refuse_covers(self.query, self.tally)
        estimate = self.comparison(name).estimate
        return estimate(self.tally, self.query, self.contributions, places)

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
    comparison = a.comparison("a")
    if problem := comparison.problem(b.comparison("b")):
        raise QueryError("b", list(b.side.words), problem)
    common = comparison.common_values(b.series.collection, query.values)
    if common is None:
        return Pairs([None])
    if not len(common.first):
        raise QueryError("b", list(b.side.words), "no value is possible on both sides")
    picked = not query.values and (query.top is not None or len(common.first) > PAGE_SIZE)
    order = np.arange(len(common.first))
    if picked:
        order = _most_frequent(a, b, common.first, common.second)[: query.top or PAGE_SIZE]
    values = [common.value(index) for index in order.tolist()]
    return Pairs(values, common.first[order], common.second[order], picked)


def _most_frequent(a: SideData, b: SideData, first: Counts, second: Counts) -> Counts:
    """Return the values' order by both sides' estimates, each weighted by its precision.

    This average is uncorrelated with the difference, so that picking by it leaves the differences
    of the picked values as they are. Picked by one side, its errors would be picked with them.
    """
    shares, precisions = zip(_precision(a, first), _precision(b, second), strict=True)
    average = (shares[0] * precisions[0] + shares[1] * precisions[1]) / sum(precisions)
    return np.argsort(-average, kind="stable")


def _precision(side: SideData, places: Counts) -> tuple[Floats, Floats]:
    shares = side_shares(
        side.series.collection, side.tally, EstimateQuery(), side.contributions, None
    )
    error = shares.evidence.error(shares.terms.target)
    return shares.frequency[places], 1 / error[places] ** 2


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
    return min(periods, collection.answering) * collection.per_day > 1


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


def _persons(side: SideData, estimate: ShareEstimates | MeanEstimate) -> Floats:
    return side.kind.handler.persons_variance(side.kind.domain, estimate.evidence)


def persons_assumption(a: SideData, b: SideData, target: IntervalTarget) -> str:
    """Return in words what is assumed of the persons on both sides."""
    if target is IntervalTarget.COHORT:
        return FIXED
    return POSSIBLE if may_share_persons(a, b) else DISJOINT
