"""The compare tab: two segments, ranges of days or definitions, and by how much they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from flask import Response, request, url_for

from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation import LookCount
from veilcount_analysis.kinds.time_ranges import TimeRange, time_range
from veilcount_analysis.query_params import Parameters
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.number_format import level
from veilcount_analysis.text.result_columns import row_name, spelled
from veilcount_analysis.text.view_parts import Table
from veilcount_shared.periods import Unit
from veilcount_shared.schedule import period_end

from ... import queries
from ...queries import CompareResult, Snapshot
from ...queries.comparison_view import ComparisonView, difference, unit_of
from .charts import Axis, Bars, Chart, estimates
from .pages import NAME, Content, Context, page, render

Range = tuple[str, str]  # two UTC days, or nothing where they are open

WEEK = 7  # days: one holds few reports
A_RANGE = {Unit.EVENT: WEEK, Unit.DAY: WEEK}


class Way(StrEnum):
    """The kind of sides."""

    SEGMENTS = "segments"
    DAYS = "days"
    SERIES = "series"


@dataclass(frozen=True, slots=True)
class Offer:
    """The sides that a collection has; all empty: there is nothing to compare."""

    segments: tuple[str, ...] = ()
    days: tuple[Range, Range] | None = None  # the newest with reports, and the one before
    series: tuple[Series, ...] = ()

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, name: str) -> Offer:
        """Return the sides of a collection."""
        series = [
            one_series
            for one_series in snapshot.named(name)
            if not one_series.collection.trust.releases
        ]
        if not series:
            return cls()
        return cls(
            segments=_segments(series[0]),
            days=_recent(snapshot, series[0]),
            series=tuple(series) if len(series) > 1 else (),
        )

    @property
    def ways(self) -> tuple[Way, ...]:
        """The kinds that have sides, the most useful first."""
        known = {Way.SEGMENTS: self.segments, Way.DAYS: self.days, Way.SERIES: self.series}
        return tuple(way for way, some in known.items() if some)


def _segments(series: Series) -> tuple[str, ...]:
    declared = [(name, labels) for name, labels in series.collection.segments if len(labels) > 1]
    return tuple(f"{name}:{spelled(label)}" for name, labels in declared for label in labels)


def _recent(snapshot: Snapshot, series: Series) -> tuple[Range, Range] | None:
    """Return the newest period with answers and the one before; of days a week each, if there is.

    Finished ones, where there are two. A campaign of one period has no two ranges.
    """
    sizes = snapshot.store.report_counts(series)
    begun = sorted({cell.period for cell, reports in sizes.items() if reports})
    end = partial(period_end, series.collection)
    over = [period for period in begun if end(period).date() <= snapshot.today]
    sides = over if len(over) > 1 else begun
    if len(sides) < 2:  # noqa: PLR2004 - sides
        return None
    width = min(A_RANGE.get(series.collection.unit, 1), (sides[-1] - sides[0] + 1) // 2)
    middle = sides[-1] + 1 - width
    pair = range(middle, sides[-1] + 1), range(middle - width, middle)
    newer, older = (time_range(series, periods, snapshot.today) for periods in pair)
    return _days(newer), _days(older)


def _days(together: TimeRange) -> Range:
    return together.first.isoformat(), together.last.isoformat()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonForm:
    """The form: each field as typed, or its default."""

    by: Way
    a: str = ""
    b: str = ""
    a_from: str = ""
    a_to: str = ""
    b_from: str = ""
    b_to: str = ""
    first: str = ""
    last: str = ""
    segment: str = ""
    values: str = ""
    level: str = "0.95"
    looks: str = "one"

    @classmethod
    def parse(cls, parameters: Mapping[str, str], offer: Offer) -> ComparisonForm:
        """Read the query string; what it leaves out has a default."""
        by = next((way for way in offer.ways if way == parameters.get("by")), offer.ways[0])
        typed = {_ENTRIES.get(name, name): word.strip() for name, word in parameters.items()}
        known = {name: word for name, word in typed.items() if name in _NAMES}
        return cls(by=by, **_defaults(by, offer) | known)

    @property
    def parameters(self) -> Parameters:
        """The parameters of the query."""
        sides = {"a": self.a, "b": self.b}
        if self.by is Way.DAYS:
            sides = {"a": f"{self.a_from}..{self.a_to}", "b": f"{self.b_from}..{self.b_to}"}
        more = {"level": self.level, "looks": self.looks, "values": self.values}
        if self.by is not Way.DAYS:
            more |= {"from": self.first, "to": self.last}
        if self.by is not Way.SEGMENTS:
            more |= {"segment": self.segment}
        return {name: [word] for name, word in (sides | more).items()}


_ENTRIES = {"from": "first", "to": "last"}
_NAMES = frozenset(ComparisonForm.__dataclass_fields__) - {"by"}


def _defaults(by: Way, offer: Offer) -> dict[str, str]:
    """Return the first two segments, the newest two ranges or the newest two definitions."""
    if by is Way.SEGMENTS:
        return {"a": offer.segments[0], "b": offer.segments[1]}
    if by is Way.SERIES:
        a, b = (f"series:{one_series.fingerprint}" for one_series in offer.series[:2])
        return {"a": a, "b": b}
    assert offer.days is not None  # noqa: S101 - it is no way else
    (a_from, a_to), (b_from, b_to) = offer.days
    return {"a_from": a_from, "a_to": a_to, "b_from": b_from, "b_to": b_to}


MOST_DRAWN = 30
WAYS = {Way.SEGMENTS: "Segments", Way.DAYS: "Ranges of days", Way.SERIES: "Definitions"}
LOOKS = {count.value: count.valid.removeprefix("valid ") for count in LookCount}
LEVELS = {part: level(float(part)) for part in ("0.9", "0.95", "0.99")}
CURATED = (
    "A curator holds these answers",
    "Compare true values through releases, which are charged to a budget: see the tab Releases.",
)
NO_SECOND_SIDE = (
    "Nothing to compare yet",
    "There are no segments, one definition, and reports of one period at most.",
)


@page("/collections/<name>/compare", tab="Compare", order=2, computes=True)
def compare(context: Context, name: str) -> Response | Content:
    """Compare two sides of a collection."""
    snapshot = context.aggregator.snapshot()
    offer = Offer.from_snapshot(snapshot, name)
    if not offer.ways:
        central = snapshot.named(name)[0].collection.trust.releases
        return {"nothing": CURATED if central else NO_SECOND_SIDE}
    form = ComparisonForm.parse(request.args, offer)
    ways = [
        (WAYS[way], url_for(f"{NAME}.compare", name=name, by=way), way is form.by)
        for way in offer.ways
    ]
    content = {"offer": offer, "form": form, "levels": LEVELS, "looks": LOOKS, "ways": ways}
    try:
        query = queries.CompareQuery.parse(form.parameters)
        result = queries.compare(snapshot, name, query)
    except QueryError as error:
        return render("compare", 400, **content, wrong=error)
    return {**content, **_shown(result)}


def _shown(result: CompareResult) -> Content:
    view = ComparisonView.from_result(result)
    return {"view": view, "chart": view.table and _chart(result, view, view.table)}


def _chart(result: CompareResult, view: ComparisonView, table: Table) -> Chart:
    rows, figures = result.rows[:MOST_DRAWN], view.figures
    left_out = ""
    if len(result.rows) > len(rows):
        left_out = " The first 30 values are drawn; the table has all."
    texts = (f"{row_name(row.value)}: {difference(row, figures)}" for row in rows)
    scale = 100 if figures.of_shares else 1
    part = estimates(rows, lambda row: row.difference, texts, scale=scale)
    unit = unit_of(result, figures)
    title = f"A minus B, in {unit}" if unit else "A minus B"
    drawing = Bars(tuple(row_name(row.value) for row in rows), (part,), Axis(title))
    return Chart("differences", drawing, table.caption + left_out, table.columns, table.rows)
