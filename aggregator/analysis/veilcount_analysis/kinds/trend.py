"""A state over time: the share of true at the end of each time range."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection, RandomSource
from veilcount_shared.domain import Boolean
from veilcount_shared.schedule import period_end

from ..audit.audit_case import AuditCase
from ..audit.trend_histories import campaign_emitter, history_pair
from ..estimation import View
from ..estimation.confidence_intervals import Counts
from ..estimation.estimator import IntervalTarget
from ..estimation.results import IntervalTerms, estimate_frequencies
from ..estimation.trend import TrendCounts, TrendEstimator
from ..mechanisms.trend import trend_handler
from ..privacy.trust_models import Quantity
from ..query_params import Parameters
from ..simulation.changing_states import TrendSimulation, simulate_trend
from ..simulation.simulated_figures import SimulatedFigures
from .estimate_query import EstimateQuery
from .headline import Headline, shares_headline
from .kind import Kind
from .labels import no_value, places_of
from .results import Figure, RangeFigures
from .scope import Scope
from .source import SelectedValues, Source, Tally
from .time_ranges import ONE_DAY, TimeRange
from .values import PAGES, SHARES, UNLISTED, share_figures, unanswered

TWO = "a trend has the shares of true and false: remove it"
Newest = tuple[int, TrendEstimator] | None


class Trend(Kind[Boolean, Newest]):
    """Its reports add up over time: a figure is of all reports so far, not of a range's."""

    name = "trend"
    panels = (SHARES,)
    facts = PAGES
    comparison = "a state over time is compared by its estimates: estimate both"
    untested = (
        "Reports of a rise or a fall have no poisoning test: the band states how far fake reports"
        " could have moved a share. They are a share of the devices, and choose how long their"
        " intervals are."
    )
    accepted_parameters: ClassVar[frozenset[str]] = frozenset({"view=smooth", "values"})
    refused_parameters: ClassVar[Mapping[str, str]] = {
        **UNLISTED,
        "top": TWO,
        "group": TWO,
        "view=consistent": "a trend has no consistent view: view=raw or view=smooth",
        "page": "a trend has one page",
        "looks=every": "the intervals of a trend hold at one planned look: looks=one",
    }
    counted = "people who report"
    smooths = True
    measures_width = True  # errors depend on which intervals are over
    simulation = TrendSimulation

    def __init__(self, collection: Collection) -> None:
        super().__init__(collection)
        self._newest: tuple[Counts, TrendCounts] | None = None

    def simulate(self, options: Parameters, generator: Generator) -> SimulatedFigures:
        return simulate_trend(self.collection, TrendSimulation.parse(options), generator)

    def headline(
        self, figures: Sequence[Figure], facts: Mapping[str, Any], *, leads: bool
    ) -> Headline:
        return shares_headline(figures, leads=leads)

    def unknown_values(self, words: Sequence[str]) -> tuple[str, ...]:
        return places_of(self.collection, words).unknown

    @property
    def quantity(self) -> Quantity:
        trend = trend_handler(self.collection).mechanism
        return Quantity.of_trend(trend.periods, trend.changes)

    def audit(self, randomness: RandomSource) -> AuditCase:
        trend = trend_handler(self.collection).mechanism
        emit = campaign_emitter(trend, randomness)
        return AuditCase(self.collection, history_pair(trend), emit)

    def check(self, query: EstimateQuery) -> None:
        super().check(query)
        if query.values:
            places = places_of(self.collection, query.values)
            if not len(places.places):
                raise no_value(self.collection, places.unknown[0])

    def load(
        self, source: Source, query: EstimateQuery, scope: Scope, whole: Tally
    ) -> SelectedValues:
        size = self.domain.size
        pages = 1 if query.values else -(-size // query.size)
        places = np.arange(size)[: query.size]
        if query.values:
            places = places_of(self.collection, query.values).places
        labels = tuple(map(bool, places.tolist()))
        return SelectedValues(labels, places, None, {"size": size, "page": 1, "pages": pages})

    def read(self, source: Source, scope: Scope, time_range: TimeRange) -> Newest:
        """Return the newest period of a range that has an estimate, and it.

        It is of all reports of periods that are over; in a range without one, up to the period.
        """
        ended = bisect_left(
            range(self.collection.periods), True, key=lambda period: not source.is_over(period)
        )
        over = [period for period in time_range.periods if period < ended]
        for period in reversed(over or time_range.periods):
            counters = source.counters_by_period(range(max(ended, period + 1)), scope.cells)
            if evidence := self._counts(counters).after(period + 1):
                return period, evidence
        return None

    def _counts(self, counters: Counts) -> TrendCounts:
        """Return the reports of each interval; all time ranges have the same array of counters."""
        if self._newest is None or self._newest[0] is not counters:
            self._newest = counters, trend_handler(self.collection).counts(counters)
        return self._newest[1]

    def figures(
        self, data: Newest, query: EstimateQuery, selection: SelectedValues, time_range: TimeRange
    ) -> RangeFigures:
        if data is None:
            return RangeFigures(0, "no reports yet", unanswered(selection.labels))
        period, evidence = data
        smoothed = ""
        if query.view is View.SMOOTH:
            evidence, smoothed = evidence.counts.smoothed_after(period + 1), ", smoothed"
        terms = IntervalTerms(query.level, IntervalTarget.POPULATION)
        shares = estimate_frequencies(evidence, terms, np.arange(2))
        labels, places = selection.labels, selection.places
        figures = share_figures(shares, query, labels, places, at_once=False)
        day = period_end(self.collection, period).date() - ONE_DAY
        return RangeFigures(
            evidence.n, f"at the end of {day}, {shares.estimand}{smoothed}", figures
        )
