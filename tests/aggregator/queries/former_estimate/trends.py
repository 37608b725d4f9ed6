"""The figures of a trend: the share whose state is true at the end of each time range."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date

import numpy as np

from veilcount_aggregator.queries.estimate_schema import ShareRow
from veilcount_aggregator.queries.snapshot import Snapshot
from veilcount_aggregator.store import Cell, TallyReader
from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation import poisoning_band
from veilcount_analysis.estimation.confidence_intervals import Counts
from veilcount_analysis.estimation.estimator import IntervalTarget
from veilcount_analysis.estimation.results import IntervalTerms, estimate_frequencies
from veilcount_analysis.estimation.trend import TrendEstimator
from veilcount_analysis.kinds.estimate_query import EstimateQuery
from veilcount_analysis.mechanisms.trend import trend_handler
from veilcount_analysis.series.series import Series
from veilcount_shared.schedule import period_end

from .estimate_results import RangeFigures, ValueSelection
from .time_ranges import ONE_DAY, TimeRange


def check_trend(query: EstimateQuery) -> None:
    """Refuse what a state over time cannot answer."""
    ways: dict[str, object] = {"top": query.top, "group": list(query.groups)}
    for name, value in ways.items():
        if value:
            raise QueryError(name, value, "a trend has the shares of true and false: remove it")


@dataclass(frozen=True, slots=True)
class TrendReader:
    """One trend, and the counters of its periods, each read once."""

    store: TallyReader
    series: Series
    today: date
    read: dict[int, Counts] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, series: Series) -> TrendReader:
        """Return the reader of a series that is a trend."""
        return cls(snapshot.store, series, snapshot.today)

    def counters(self, period: int) -> Counts:
        """Return the counters of a period."""
        if period not in self.read:
            self.read[period] = self.store.counters(self.series, [Cell(period, 0)])
        return self.read[period]

    def newest(self, among: range) -> tuple[int, TrendEstimator] | None:
        """Return the newest of these periods that has an estimate, and it; over ones first."""
        handler = trend_handler(self.series.collection)
        over = [each for each in among if self._is_over(each)]
        for period in reversed(over or among):
            if found := handler.evidence(period, self.counters):
                return period, found
        return None

    def _is_over(self, period: int) -> bool:
        return period_end(self.series.collection, period).date() <= self.today


def trend_figures(
    reader: TrendReader, query: EstimateQuery, shown: ValueSelection, each: TimeRange
) -> RangeFigures:
    """Return the shares of true and false at the end of a time range, as far as it is known."""
    found = reader.newest(each.periods)
    if found is None:
        empty = [ShareRow(label, None, None, 0.0, 1.0, 0.0, 1.0) for label in shown.labels]
        return RangeFigures(0, "no answers yet", empty)
    period, evidence = found
    last = period_end(reader.series.collection, period).date() - ONE_DAY
    shares = estimate_frequencies(
        evidence, IntervalTerms(query.level, IntervalTarget.POPULATION), np.arange(2)
    )
    band = poisoning_band(evidence, query.fakes)
    columns = (shares.frequency, shares.frequency * evidence.n, shares.low, shares.high)
    figures = np.stack([*columns, band.low, band.high], axis=1)[shown.places].tolist()
    rows = [ShareRow(label, *row) for label, row in zip(shown.labels, figures, strict=True)]
    return RangeFigures(evidence.n, f"at the end of {last}, {shares.estimand}", rows)
