"""The finding of a collection in a line: of a query, and the newest for the overview.

What a finding leads with: how two segments differ, or the last period from the first.

Where they differ, the share of all answers together describes none of them. Which sides are
compared follows from the definition and the calendar, not from the answers; of several comparisons
one leads by chance no more often than the level allows for all of them (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from veilcount_analysis.errors import QueryError
from veilcount_analysis.kinds.comparison import LISTED_VALUES, NUMBER, Comparison
from veilcount_analysis.kinds.estimate import estimate_series
from veilcount_analysis.kinds.estimate_query import EstimateQuery, GroupBy
from veilcount_analysis.kinds.headline import (
    AT_ONCE,
    Headline,
    mean_ends,
    mean_text,
    share_ends,
    share_range,
)
from veilcount_analysis.kinds.labels import Value
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.kinds.results import Figure
from veilcount_analysis.kinds.sample_adequacy import LISTED, SampleAdequacy, Terms, sample_adequacy
from veilcount_analysis.kinds.scope import periods_of
from veilcount_analysis.kinds.time_ranges import TimeRange, time_ranges
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.result_columns import spelled, value_name
from veilcount_analysis.text.utc_days import in_days
from veilcount_shared.periods import Unit
from veilcount_shared.schedule import period_end

from .comparison import CompareQuery, CompareResult, ComparisonRow, SideFigure, compare
from .comparison_sides import Side
from .comparison_view import ComparisonView
from .estimate import RequestedSeries, estimate
from .snapshot import Tallies

#: the periods that are one side; a campaign of one period has no second side
SIDES = {
    Unit.EVENT: GroupBy.WEEK,
    Unit.DAY: GroupBy.WEEK,
    Unit.WEEK: GroupBy.WEEK,
    Unit.MONTH: GroupBy.MONTH,
}
FAINT = 50  # times fewer reports than another time range: it is no side
TWO = 2  # values of a segment


def leading_difference(
    snapshot: Tallies, series: Series, query: EstimateQuery, figures: Sequence[Figure]
) -> Headline | None:
    """Return the difference that a finding leads with, of figures; None: none is seen.

    Of true and false, true is compared.
    """
    if not _is_compared(series, query):
        return None
    values = (spelled(True),) if any(row.of is True for row in figures) else ()
    common = CommonQuery(snapshot, series, query, values)
    return common.between_segments() or common.over_time()


def _is_compared(series: Series, query: EstimateQuery) -> bool:
    """Whether all values of a short list are shown, or a number."""
    kind = kind_of(series.collection)
    comparison = kind.comparison
    if not isinstance(comparison, Comparison) or query.groups or query.page > 1:
        return False
    if comparison.subject == LISTED_VALUES:
        return not query.values and kind.domain.size <= LISTED
    return comparison.subject == NUMBER


class CommonQuery:
    """The query of a finding, of which two sides are compared."""

    def __init__(
        self, snapshot: Tallies, series: Series, query: EstimateQuery, values: tuple[str, ...]
    ) -> None:
        self.snapshot, self.series, self.values = snapshot, series, values
        self.query = replace(query, series=(series.fingerprint,), top=None)
        self.segments, self.ranges = list(self._segments()), self._finished()

    @property
    def comparisons(self) -> int:
        """How many comparisons may lead."""
        return len(self.segments) + (len(self.ranges) >= TWO)

    # -- segments ----------------------------------------------------------------------------------

    def between_segments(self) -> Headline | None:
        """Return how the two values of a segment differ, where none of them is selected."""
        for a, b in self.segments:
            if comparison := self._compared(a, b):
                view = ComparisonView.from_result(comparison)
                return self._leaders(a, b) or Headline(view.headline, view.details)
        return None

    def _segments(self) -> Iterator[tuple[Side, Side]]:
        selected = dict(self.query.segments)
        for name, labels in self.series.collection.segments:
            if name not in selected and len(labels) == TWO:
                a, b = (Side.parse("segment", [f"{name}:{spelled(label)}"]) for label in labels)
                yield a, b

    def _leaders(self, a: Side, b: Side) -> Headline | None:
        """Return which values lead on the two sides, where these are others; both at the level."""
        level = (1 + self.query.level) / 2  # each side may be wrong in half of the cases
        first, second = (self._leader(side, level) for side in (a, b))
        if first is None or second is None or first == second or isinstance(first, bool):
            return None
        names = [" ".join(side.segments[0]) for side in (a, b)]
        text = f"{value_name(first)} leads in {names[0]}, {value_name(second)} in {names[1]}"
        return Headline(text, f"Each share is the largest there, {AT_ONCE}.")

    def _leader(self, side: Side, level: float) -> Value | None:
        query = replace(side.within(self.query), level=level)
        result = estimate(self.snapshot, self.series.collection.name, query)
        return result.series[0].ranges[-1].leader

    # -- time --------------------------------------------------------------------------------------

    def over_time(self) -> Headline | None:
        """Return how the last finished time range differs from the first one."""
        if len(self.ranges) < TWO:
            return None
        first, last = self.ranges[0], self.ranges[-1]
        comparison = self._compared(_side_of(last), _side_of(first))
        if comparison is None:
            return None
        row = min(comparison.rows, key=lambda row: (row.holm, -abs(row.difference)))
        days = in_days(last.first, last.last), in_days(first.first, first.last)
        text = _changed(row, *days, self.series.collection.measured_in)
        return Headline(text, f"The surest change, {AT_ONCE}." if comparison.family > 1 else "")

    def _finished(self) -> list[TimeRange]:
        """Return the finished time ranges that are sides, the oldest first."""
        by, today = SIDES.get(self.series.collection.unit), self.snapshot.today
        over = self._over(today)
        if by is None or not over:
            return []
        reports = dict.fromkeys(over, 0)
        for cell, number in self.snapshot.store.report_counts(self.series).items():
            if cell.period in reports:
                reports[cell.period] += number
        ranges = time_ranges(self.series, over, by, today)
        sizes = [sum(reports[period] for period in one_range.periods) for one_range in ranges]
        return [
            one_range
            for one_range, size in zip(ranges, sizes, strict=True)
            if size and size * FAINT >= max(sizes)
        ]

    def _over(self, today: date) -> range:
        collection = self.series.collection
        periods = periods_of(self.series, self.query, today)
        over = [period for period in periods if period_end(collection, period).date() <= today]
        return range(over[0], over[-1] + 1) if over else range(0)

    # -- both --------------------------------------------------------------------------------------

    def _compared(self, a: Side, b: Side) -> CompareResult | None:
        """Return how two sides differ; None: they do not, or cannot be compared."""
        collection, query = self.series.collection, self.query
        selected = CompareQuery(
            a=a,
            b=b,
            first=query.first,
            last=query.last,
            level=query.level,
            segments=query.segments,
            series=query.series,
            values=self.values,
            among=query.among,
            looks=query.looks,
        )
        try:
            comparison = compare(self.snapshot, collection.name, selected)
        except QueryError:  # such as of batches with covers, at every look
            return None
        alpha = (1 - query.level) / self.comparisons
        return comparison if any(row.holm <= alpha for row in comparison.rows) else None


def _side_of(days: TimeRange) -> Side:
    return Side.parse("days", [f"{days.first}..{days.last}"])


def _changed(row: ComparisonRow, now: str, before: str, unit: str | None) -> str:
    """Return a change as a sentence about the later side, which is the first of the two."""
    later, earlier = (_figure(row, side) for side in (row.a, row.b))
    way = "up" if row.difference > 0 else "down"
    if row.value is None:
        past = mean_ends(earlier, unit)
        return f"{mean_text(later, unit)}, {now}, {way} from {past}, {before}"
    return f"{share_range(later)} {now}, {way} from {share_ends(earlier)} {before}"


def _figure(row: ComparisonRow, side: SideFigure) -> Figure:
    kind = "mean" if row.value is None else "share"
    return Figure(kind, row.value, side.figure, side.low, side.high)


FEW = 5  # largest values of a long list: the rest leads none of them


def headline(
    snapshot: Tallies,
    series: Series,
    query: EstimateQuery,
    figures: Sequence[Figure],
    facts: Mapping[str, Any],
    *,
    leads: bool,
) -> Headline:
    """Return how segments or periods differ, else the figures; with the segments of the query."""
    finding = kind_of(series.collection).headline(figures, facts, leads=leads)
    if lead := leading_difference(snapshot, series, query, figures):
        together = f"{lead.decision} All together: {finding.text}.".lstrip()
        finding = replace(lead, decision=together)
    where = ", ".join(f"{name} {value}" for name, value in query.segments)
    return replace(finding, text=f"In {where}: {finding.text}") if where else finding


def latest_headline(snapshot: Tallies, series: Series, n: int) -> tuple[SampleAdequacy, str]:
    """Return whether n reports of a series are enough, and the headline if they are."""
    collection = series.collection
    kind, sampled = kind_of(collection), collection.answering * collection.per_day == 1
    adequacy = sample_adequacy(kind.error_model, n, Terms(sampled=sampled))
    if not (adequacy.usable or kind.measures_width):
        return adequacy, ""
    is_long = kind.accepts("top") and collection.domain.size > LISTED
    query = EstimateQuery(series=(series.fingerprint,), top=FEW if is_long else None)
    request = replace(RequestedSeries.check(snapshot, series, query), kind=kind.brief)
    _, data = request.loaded(query)
    series_figures = estimate_series(request.kind, query, data)
    newest = series_figures.ranges[-1]
    if kind.measures_width or newest.covers:
        adequacy = newest.adequacy
    if not adequacy.usable:
        return adequacy, ""
    figures, leads = newest.result.figures, newest.result.leader is not None
    facts = series_figures.facts
    return adequacy, headline(snapshot, series, query, figures, facts, leads=leads).text
