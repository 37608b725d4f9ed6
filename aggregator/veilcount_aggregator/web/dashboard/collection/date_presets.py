"""Ranges of days at a click, and the same time before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.kinds.scope import periods_of
from veilcount_analysis.kinds.time_ranges import time_range
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.result_columns import spelled
from veilcount_shared.periods import Unit

from ....queries import EstimateQuery, Snapshot, estimate
from ....queries.estimate_schema import RangeResult, SeriesResult
from .filters import Filter, Link
from .url_state import PageAddress

BY_DAY = ((7, "last 7 days"), (30, "last 30 days"))
#: periods, and their name
PRESETS = {
    Unit.EVENT: BY_DAY,
    Unit.DAY: BY_DAY,
    Unit.WEEK: ((1, "last week"), (4, "last 4 weeks")),
    Unit.MONTH: ((1, "last month"), (3, "last 3 months")),
    Unit.USER: (),
}


def date_presets(
    at: PageAddress, series: Series, query: EstimateQuery, today: date
) -> Filter | None:
    """Return the choice of days up to the latest period; None: there is nothing to choose."""
    links = tuple(_links(at, series, query, today))
    return ("Days", links) if len(links) > 1 else None


def _links(at: PageAddress, series: Series, query: EstimateQuery, today: date) -> Iterator[Link]:
    _, newest = series.open_periods(today)
    for number, name in PRESETS[series.collection.unit]:
        if newest >= number:
            preset = time_range(series, range(newest + 1 - number, newest + 1), today)
            current = (query.first, query.last) == (preset.first, preset.last)
            yield name, at.to(**{"from": str(preset.first), "to": str(preset.last)}), current
    yield "all", at.to(**{"from": None, "to": None}), query.first is query.last is None


def time_before(
    snapshot: Snapshot, series: Series, query: EstimateQuery, shown_now: SeriesResult
) -> RangeResult | None:
    """Return the same figures over as many periods before; None: there are not as many."""
    if query.first is None and query.last is None:
        return None
    shown = periods_of(series, query, snapshot.today)
    if shown.start < len(shown):
        return None
    before = time_range(series, range(shown.start - len(shown), shown.start), snapshot.today)
    earlier = replace(
        query, first=before.first, last=before.last, series=(series.fingerprint,), top=None, page=1
    )
    if kind_of(series.collection).followed == "share" and not query.groups:
        figures = shown_now.ranges[-1].figures
        words = tuple(spelled(row.of) for row in figures if row.kind == "share")
        earlier = replace(earlier, values=words, candidates=(), discover=False)
    return estimate(snapshot, series.collection.name, earlier).series[0].ranges[0]
