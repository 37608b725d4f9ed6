"""An estimate's answer: the series side by side, each with what it protects and what was lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.domain import Number

from ..errors import QueryError
from ..estimation import LookCount, View
from ..estimation.confidence_intervals import Counts
from ..mechanisms import handler_of, poisoning_test
from ..series.series import Series
from ..store import Cell, ServiceCounter
from ..text.privacy_guarantees import epsilons, promise
from .categorical_results import ValueSelection, presence_is_hidden, ranked, share_result
from .domain_values import groups_of, no_value, places_of, size_of
from .estimate_query import MOST_ROWS, Denominator, EstimateQuery
from .estimate_schema import EstimateResult, SeriesEstimate, TimeRangeEstimate
from .numeric_results import Bounds, numeric_result, ranges_of
from .segment_cells import cells
from .snapshot import Snapshot
from .time_ranges import TimeRange, covered, time_range, time_ranges
from .uncounted import UncountedReports

NUMBER_ROWS = 600  # a curve, a histogram, quantiles
ANSWERS = "answers"
REPORTS = "reports: answers, and those of devices that had none to give"
ONE_LOOK = (
    "the bands of a distribution or of ranges hold at one planned look: looks=one, or a collection"
    ' with measure = "mean"'
)
UNTESTED = "Reports of numbers are not tested for fakes: the band says what they could have moved."


def estimate(snapshot: Snapshot, name: str, asked: EstimateQuery) -> EstimateResult:
    """Return the answer to a question about a collection."""
    noted = snapshot.store.service_counts()
    parts = [SeriesPart.of(snapshot, each, asked) for each in chosen_series(snapshot, name, asked)]
    rows = sum(part.rows for part in parts)
    if rows > MOST_ROWS:
        fix = f"{rows:,} figures, at most {MOST_ROWS:,}: ask for fewer values, days or series"
        raise QueryError("size", asked.size, fix)
    return EstimateResult(
        collection=name,
        by=asked.by,
        view=asked.view,
        level=asked.level,
        simultaneous=asked.is_simultaneous,
        looks=asked.looks,
        validity=asked.looks.valid,
        among=asked.among,
        fakes=float(asked.fakes),
        segments=dict(asked.segments),
        series=[part.told(noted) for part in parts],
    )


def chosen_series(snapshot: Snapshot, name: str, asked: EstimateQuery) -> list[Series]:
    """Return the series that a question is about: those that are named, or all with answers.

    A series that the range does not touch, or that has no such segment or value, is left out; if
    none is left, the newest says why.
    """
    series = snapshot.local(name, asked.series)
    refused: list[QueryError] = []
    fit: list[Series] = []
    for each in series:
        try:
            _check(snapshot, each, asked)
            fit.append(each)
        except QueryError as error:
            refused.append(error)
    if not fit:
        raise refused[0]
    answered = [each for each in fit if snapshot.reports(each)]
    return fit if asked.series else answered or fit[:1]


def _check(snapshot: Snapshot, series: Series, asked: EstimateQuery) -> None:
    """Refuse what has no meaning for a series."""
    collection = series.collection
    time_ranges(series, periods_of(snapshot, series, asked), asked.by, snapshot.today)
    cells(collection, asked.segments)
    if asked.among is Denominator.ANSWERED and not presence_is_hidden(collection):
        raise QueryError("among", "answered", "presence is public, so all of them answered: all")
    if isinstance(collection.domain, Number):
        _check_number(collection, asked)
    elif asked.groups:
        groups_of(collection, asked.groups)
    elif asked.values:
        found = places_of(collection, asked.values)
        if not len(found.places):
            raise no_value(collection, found.unknown[0])
    elif not asked.top:
        page_of(collection, asked)


def _check_number(collection: Collection, asked: EstimateQuery) -> None:
    ways: dict[str, object] = {"top": asked.top, "group": list(asked.groups)}
    for name, given in ways.items():
        if given:
            raise QueryError(name, given, "this collection is of a number: remove it")
    if asked.view is View.CONSISTENT:
        raise QueryError("view", str(asked.view), "a number has the raw view alone: view=raw")
    if asked.page > 1:
        raise QueryError("page", asked.page, "a number has one page")
    if (
        asked.looks is LookCount.EVERY
        and not handler_of(collection.mechanism).has_anytime_intervals
    ):
        raise QueryError("looks", str(asked.looks), ONE_LOOK)
    ranges_of(collection, asked.values)


def periods_of(snapshot: Snapshot, series: Series, asked: EstimateQuery) -> range:
    """Return the periods that a question covers, or refuse a range outside the campaign."""
    found = covered(series, asked.first, asked.last, snapshot.today)
    if found is None:
        collection = series.collection
        outside = asked.first is not None and asked.first >= collection.until
        name, day = ("from", asked.first) if outside else ("to", asked.last)
        raise QueryError(
            name, day, f"the campaign is {collection.start} until before {collection.until}"
        )
    return found


def counters_of(
    snapshot: Snapshot, series: Series, periods: range, segments: Sequence[int]
) -> Counts:
    """Return the counters of some periods and cells together."""
    asked = [Cell(period, segment) for period in periods for segment in segments]
    return snapshot.store.counters(series, asked)


@dataclass(frozen=True, slots=True, eq=False)
class SeriesPart:
    """One series of an answer, with all that is read of it."""

    snapshot: Snapshot
    series: Series
    asked: EstimateQuery
    whole: TimeRange
    cut: tuple[TimeRange, ...]
    counters: Counts
    shown: ValueSelection | tuple[Bounds, ...]
    stand_out: int | None

    @classmethod
    def of(cls, snapshot: Snapshot, series: Series, asked: EstimateQuery) -> SeriesPart:
        """Read what a question needs of a series. What is shown is chosen once, over all of it."""
        periods = periods_of(snapshot, series, asked)
        counters = counters_of(snapshot, series, periods, cells(series.collection, asked.segments))
        shown, stand_out = _shown(series.collection, counters, asked)
        return cls(
            snapshot,
            series,
            asked,
            time_range(series, periods, snapshot.today),
            tuple(time_ranges(series, periods, asked.by, snapshot.today)),
            counters,
            shown,
            stand_out,
        )

    @property
    def collection(self) -> Collection:
        """The definition."""
        return self.series.collection

    @property
    def rows(self) -> int:
        """How many figures it will have."""
        each = len(self.shown.labels) if isinstance(self.shown, ValueSelection) else NUMBER_ROWS
        return len(self.cut) * each

    def told(self, noted: dict[ServiceCounter, int]) -> SeriesEstimate:
        """Return what is said of the series."""
        beside, collection = UncountedReports.of(noted, self.series.fingerprint), self.collection
        suspicious, suspicion = poisoning_finding(collection, self.counters)
        size, page, pages = self._pages()
        return SeriesEstimate(
            fingerprint=self.series.fingerprint,
            question=collection.question,
            unit=collection.unit,
            epsilon=epsilons(collection),
            promise=promise(collection),
            counts=REPORTS if presence_is_hidden(collection) else ANSWERS,
            size=size,
            page=page,
            pages=pages,
            stand_out=self.stand_out,
            suspicious=suspicious,
            suspicion=suspicion,
            unplaced=beside.unplaced(),
            losses=beside.losses(),
            time_ranges=[self._stretch(each, beside) for each in self.cut],
        )

    def _pages(self) -> tuple[int | None, int, int]:
        if isinstance(self.collection.domain, Number):
            return None, 1, 1
        size, asked = size_of(self.collection), self.asked
        if asked.top or asked.values or asked.groups:
            return size, 1, 1
        return size, asked.page, -(-size // asked.size)

    def _stretch(self, each: TimeRange, beside: UncountedReports) -> TimeRangeEstimate:
        counters, contributions = self._counters(each), each.contributions(self.collection)
        said = TimeRangeEstimate(
            first=each.first,
            last=each.last,
            first_period=each.periods[0],
            last_period=each.periods[-1],
            filling=each.filling,
            n=0,
            of="",
            contributions=contributions,
            verdicts=beside.verdicts(each.periods),
            values=[],
            absent=None,
            mean=None,
            spread=None,
        )
        if isinstance(self.shown, ValueSelection):
            rows = share_result(self.collection, counters, self.asked, self.shown, contributions)
            said.n, said.of, said.values, said.absent = rows.n, rows.of, rows.rows, rows.absent
            return said
        figures = numeric_result(self.collection, counters, self.asked, self.shown, contributions)
        said.n, said.of, said.values = figures.n, figures.of, figures.rows
        said.mean, said.spread = figures.mean, figures.spread
        return said

    def _counters(self, each: TimeRange) -> Counts:
        if each.periods == self.whole.periods:
            return self.counters
        segments = cells(self.collection, self.asked.segments)
        return counters_of(self.snapshot, self.series, each.periods, segments)


def _shown(
    collection: Collection, counters: Counts, asked: EstimateQuery
) -> tuple[ValueSelection | tuple[Bounds, ...], int | None]:
    """Return what is shown, and for a top list how many values stand out from noise."""
    if isinstance(collection.domain, Number):
        return tuple(ranges_of(collection, asked.values)), None
    if asked.groups:
        groups = groups_of(collection, asked.groups)
        return ValueSelection(tuple(groups), np.arange(len(groups)), tuple(groups.values())), None
    if asked.values:
        return ValueSelection.of(collection, places_of(collection, asked.values).places), None
    if asked.top:
        places, stand_out = ranked(collection, counters, asked)
        return ValueSelection.of(collection, places), stand_out
    return ValueSelection.of(collection, page_of(collection, asked)), None


def page_of(collection: Collection, asked: EstimateQuery) -> Counts:
    """Return the places of a page, or refuse one that is beyond the last."""
    size = size_of(collection)
    begin = (asked.page - 1) * asked.size
    if begin >= size:
        raise QueryError("page", asked.page, f"the last page is {-(-size // asked.size)}")
    return np.arange(begin, min(begin + asked.size, size))


def poisoning_finding(collection: Collection, counters: Counts) -> tuple[bool, str]:
    """Return whether the tests for fakes saw any, and what they say."""
    if not handler_of(collection.mechanism).has_shares:
        return False, UNTESTED
    if not counters.any():
        return False, "There are no answers to test."
    found = poisoning_test(collection, counters)
    return found.suspicious, str(found)
