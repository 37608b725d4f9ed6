"""The counters of one series without a store, and their figures by the one entrance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import product

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.collection import Model
from veilcount_shared.domain import OpenStrings
from veilcount_shared.schedule import period_end

from ..errors import CountsError, QueryError
from ..kinds.estimate import SeriesData, SeriesFigures, estimate_series, require_few_rows
from ..kinds.estimate_query import EstimateQuery, GroupBy
from ..kinds.registry import kind_of
from ..kinds.scope import Scope
from ..kinds.source import Searches, Tally
from ..series.packed_rows import Counters
from ..series.series import Series

UNDATED = "the counts have no column period: add it, or leave this out"
SUMMED = "the counts are of all segments together: leave it out"


@dataclass(frozen=True, slots=True, eq=False)
class CountersSource:
    """The counters of a series by period and cell, as of a day.

    Without dates all of them are in period 0, and are of the whole campaign; without segments all
    are in cell 0. By default a query covers `first` to `last`.
    """

    series: Series
    counters: Mapping[tuple[int, int], Counters]
    today: date
    dated: bool = True
    by_segment: bool = True
    first: date | None = None
    last: date | None = None

    def tally(self, periods: range, cells: Sequence[int]) -> Tally:
        """Return the tally of periods and cells together."""
        total = np.zeros(self.series.counters, np.int64)
        for at in product(periods, cells):  # and not all counters: each day asks for its own
            if (counters := self.counters.get(at)) is not None:
                total += counters
        return Tally(total)

    def counters_by_period(self, periods: range, cells: Sequence[int]) -> Counters:
        """Return the counters of cells together, a row for each period."""
        return np.stack(
            [self.tally(range(period, period + 1), cells).counters for period in periods]
        )

    def is_over(self, period: int) -> bool:
        """Whether a period has ended."""
        return period_end(self.series.collection, period).date() <= self.today

    @property
    def searches(self) -> Searches:
        """Open strings are refused before: a search is counted, and a file counts none."""
        raise CountsError("collection", self.series.collection.name, OPEN_STRINGS)

    def check(self, query: EstimateQuery) -> None:
        """Refuse a query of what the counts do not distinguish."""
        if not self.dated:
            for name, value in (("from", query.first), ("to", query.last)):
                if value is not None:
                    raise QueryError(name, value, UNDATED)
            if query.by is not GroupBy.ALL:
                raise QueryError("by", str(query.by), UNDATED)
        if query.segments and not self.by_segment:
            raise QueryError("segment", ":".join(query.segments[0]), SUMMED)


def estimate_counters(
    source: CountersSource,
    query: EstimateQuery = EstimateQuery(),  # noqa: B008 - it is frozen
) -> SeriesFigures:
    """Return the figures of counters: the same as a server's of the same counters."""
    require_countable(source.series.collection)
    source.check(query)
    query = replace(query, first=query.first or source.first, last=query.last or source.last)
    kind = kind_of(source.series.collection)
    kind.check(query)
    data = SeriesData.load(
        kind, source, query, Scope.from_query(source.series, query, source.today)
    )
    require_few_rows(data.figure_count(kind), query)
    return estimate_series(kind, query, data)


CENTRAL = "its model is central, so its counts are true ones: figures leave through releases alone"
SHUFFLED = "a shuffler's cover reports are among its reports, and counts do not say how many"
OPEN_STRINGS = "its values are open: each search among them is counted, and only a store does that"


def require_countable(collection: Collection) -> None:
    """Refuse a collection of which counts alone give no figures."""
    problem = ""
    if collection.trust.releases:
        problem = CENTRAL
    elif collection.model is Model.SHUFFLED:
        problem = SHUFFLED
    elif isinstance(collection.domain, OpenStrings):
        problem = OPEN_STRINGS
    if problem:
        raise CountsError("collection", collection.name, problem)
