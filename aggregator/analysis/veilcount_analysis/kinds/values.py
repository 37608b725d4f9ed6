"""Listed values, true or false, and crossed ones: the share of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from veilcount_shared import Collection
from veilcount_shared.domain import Boolean, Choice, Cross, Several

from ..errors import QueryError
from ..estimation import NoReports, ShareEstimates, View, base_cut, noise_line, poisoning_band
from ..estimation.confidence_intervals import Counts, Ends
from ..estimation.estimator import Estimator
from ..estimation.fieller import RatioEstimator
from ..estimation.proportions import SupportCounts
from ..estimation.raking import CellSupports
from ..estimation.response_distribution import ResponseDistribution
from ..estimation.results import ESTIMANDS
from ..mechanisms import estimate_shares, estimate_sums, poisoning_test, share_handler
from ..mechanisms.estimates import ALL_DEVICES, ANSWERED, TermOptions
from ..privacy.trust_models import Quantity
from ..query_params import Parameters
from ..simulation.local_vs_central import AnswersSimulation, compare_local_and_central
from ..simulation.population import Population
from ..simulation.simulated_figures import SimulatedFigures, SimulationQuery
from ..simulation.true_values import TrueValues
from .comparison import LISTED_VALUES, CommonValues, Comparison
from .estimate_query import Denominator, EstimateQuery
from .headline import AT_ONCE, Headline, shares_headline
from .kind import SummedKind
from .labels import Value, groups_of, no_value, part_names, places_of, value_at, value_key
from .panels import Panel
from .results import Figure, RangeFigures
from .sample_adequacy import LISTED
from .scope import Scope
from .source import SelectedValues, Source, Tally
from .time_ranges import TimeRange

ABSENT = "absent"
LISTS_VALUES = "this collection lists its values: give values, or none for all"
UNLISTED: Mapping[str, str] = {"candidates": LISTS_VALUES, "discover": LISTS_VALUES}
SHARES = Panel(("share", ABSENT), "Shares of the answers")
RAKED = Panel(("raked",), "Shares reweighted to the population")
PROBABILITIES: Mapping[str, str] = {
    "P": "probability that a report supports its own value",
    "Q": "of another value: (count / n - Q) / (P - Q) is the raw share",
}
PAGES: Mapping[str, str] = {
    "size": "size of the domain",
    "page": "page of the domain",
    "pages": "number of pages",
}


class Values(SummedKind[Boolean | Choice | Cross | Several]):
    """Shares of listed values, or of groups of them; of hidden presence also that of `absent`."""

    name = "values"
    panels = (SHARES, RAKED)
    facts: ClassVar[Mapping[str, str]] = {
        **PROBABILITIES,
        **PAGES,
        "stand_out": "number of values significantly above noise; null without `top`",
    }
    accepted_parameters: ClassVar[frozenset[str]] = frozenset(
        {"view=consistent", "view=smooth", "page", "looks=every", "top", "group", "values"}
    )
    refused_parameters: ClassVar[Mapping[str, str]] = UNLISTED
    simulation: ClassVar[type[SimulationQuery] | None] = AnswersSimulation

    def check(self, query: EstimateQuery) -> None:
        super().check(query)
        if query.groups:
            groups_of(self.collection, query.groups)
        elif query.values:
            named = places_of(self.collection, query.values)
            if not len(named.places):
                raise no_value(self.collection, named.unknown[0])
        elif not query.top:
            self._page(query)

    def load(
        self, source: Source, query: EstimateQuery, scope: Scope, whole: Tally
    ) -> SelectedValues:
        size, stand_out = self.collection.domain.size, None
        if query.groups:
            groups = groups_of(self.collection, query.groups)
            facts = self._facts(size)
            return SelectedValues(
                tuple(groups), np.arange(len(groups)), tuple(groups.values()), facts
            )
        if query.values:
            return self._at(places_of(self.collection, query.values).places, self._facts(size))
        if query.top:
            places, stand_out = self._ranked(whole, query.top, query.view)
            return self._at(places, self._facts(size, stand_out=stand_out))
        pages = -(-size // query.size)
        return self._at(self._page(query), self._facts(size, page=query.page, pages=pages))

    def figures(
        self, data: Tally, query: EstimateQuery, selection: SelectedValues, time_range: TimeRange
    ) -> RangeFigures:
        is_whole = query.view is View.CONSISTENT and selection.groups is None
        contributions = time_range.contributions(self.collection)
        terms = TermOptions(looks=query.looks, contributions=contributions, covers=data.covers)
        shares = self._shares(data, query, selection, terms, is_whole=is_whole)
        if isinstance(shares, NoReports):
            return RangeFigures(0, shares.estimand, unanswered(selection.labels))
        places = selection.places if is_whole else np.arange(len(selection.labels))
        figures = share_figures(shares, query, selection.labels, places)
        chosen = query.top or query.values or query.groups
        is_page = not chosen and len(places) < self.collection.domain.size
        leader = None if is_page else leading(figures)
        if shares.absent is not None:
            (absent,) = share_figures(shares.absent, query, (ABSENT,), np.arange(1))
            figures = (*figures, replace(absent, kind=ABSENT))
        return RangeFigures(shares.n, shares.estimand, figures, leader)

    def cell_supports(self, tallies: Iterable[Tally], selection: SelectedValues) -> CellSupports:
        handler, places = share_handler(self.collection), selection.places
        counts = [handler.support_counts(tally.counters, places) for tally in tallies]
        return CellSupports.from_counts(counts)

    def poisoning(self, whole: Tally) -> tuple[bool, str]:
        return poisoning_finding(self.collection, whole)

    def headline(
        self, figures: Sequence[Figure], facts: Mapping[str, Any], *, leads: bool
    ) -> Headline:
        if facts["stand_out"] == 0 and self.searchable:
            return Headline("No value stands out from noise", f"Decided with {AT_ONCE}.")
        return shares_headline(figures, leads=leads)

    def notes(self, facts: Mapping[str, Any]) -> list[str]:
        if facts["stand_out"] is None:
            return []
        return [f"{facts['stand_out']:,} of {facts['size']:,} values stand out from noise"]

    @property
    def searchable(self) -> bool:
        return not isinstance(self.domain, Boolean)

    @property
    def groupings(self) -> tuple[str, ...]:
        return part_names(self.domain) if isinstance(self.domain, Cross) else ()

    def unknown_values(self, words: Sequence[str]) -> tuple[str, ...]:
        return places_of(self.collection, words).unknown

    @property
    def comparison(self) -> Comparison:
        estimate = partial(side_shares, self.collection)
        return Comparison(LISTED_VALUES, self._common_values, estimate)

    def _common_values(self, other: Collection, words: Sequence[str]) -> CommonValues:
        places = np.arange(self.domain.size)
        if words:
            places = places_of(self.collection, words).places
        places_there = places
        if self.domain != other.domain:
            table = {value_key(value_at(other, place)): place for place in range(other.domain.size)}
            keys = [value_key(value_at(self.collection, place)) for place in places.tolist()]
            common = [index for index, key in enumerate(keys) if key in table]
            places = places[common]
            places_there = np.array([table[keys[index]] for index in common], np.int64)
        return CommonValues(
            places, places_there, lambda index: value_at(self.collection, int(places[index]))
        )

    def frequencies(self, whole: Tally) -> tuple[float, ...] | None:
        shares = estimate_shares(self.collection, whole.counters, covers=whole.covers)
        if isinstance(shares, NoReports):
            return None
        parts = [shares.frequency] + ([shares.absent.frequency] if shares.absent else [])
        return tuple(np.clip(np.concatenate(parts), 0, 1).tolist())

    def simulate(self, options: Parameters, generator: Generator) -> SimulatedFigures:
        query, collection = AnswersSimulation.parse(options), self.collection
        population = self.population(query.truth, query.n)
        simulated = compare_local_and_central(collection, population, generator, query.level)
        named = partial(value_at, collection)
        return simulated.figures(self.domain.size, query.top, named, of_shares=True)

    def population(self, truth: TrueValues, n: int) -> Population:
        """Return n devices that have these values."""
        return truth.population(n, np.arange(self.domain.size), self._typed_place)

    def _typed_place(self, word: str) -> int:
        named = places_of(self.collection, [word])
        if named.unknown:
            raise no_value(self.collection, word, "truth")
        return int(named.places[0])

    @property
    def quantity(self) -> Quantity:
        return Quantity.of_values(self.collection.inputs)

    @property
    def line(self) -> float | None:
        if self.collection.inputs <= LISTED:
            return None
        response = share_handler(self.collection).response
        return noise_line(response, 1, self.collection.domain.size)

    def _facts(self, size: int, **more: Any) -> dict[str, Any]:
        response = share_handler(self.collection).response
        facts = {"P": response.P, "Q": response.Q, "size": size, "page": 1, "pages": 1}
        return facts | {"stand_out": None} | more

    def _at(self, places: Counts, facts: Mapping[str, Any]) -> SelectedValues:
        named = partial(value_at, self.collection)
        return SelectedValues(tuple(map(named, places.tolist())), places, None, facts)

    def _page(self, query: EstimateQuery) -> Counts:
        size, begin = self.collection.domain.size, (query.page - 1) * query.size
        if begin >= size:
            raise QueryError("page", query.page, f"the last page is {-(-size // query.size)}")
        return np.arange(begin, min(begin + query.size, size))

    def _ranked(self, whole: Tally, top: int, view: View) -> tuple[Counts, int]:
        """Return the largest shares; the consistent view has those above noise only."""
        raw = estimate_shares(self.collection, whole.counters, covers=whole.covers)
        if isinstance(raw, NoReports):
            return np.arange(min(top, self.collection.domain.size)), 0
        above = base_cut(raw.frequency, _noise(self.collection, raw.evidence), raw.n)
        largest = np.argsort(-raw.frequency, kind="stable")
        return (above if view is View.CONSISTENT else largest)[:top], len(above)

    def _shares(
        self,
        data: Tally,
        query: EstimateQuery,
        selection: SelectedValues,
        terms: TermOptions,
        *,
        is_whole: bool,
    ) -> ShareEstimates | NoReports:
        if selection.groups is None:
            places = None if is_whole else selection.places.tolist()
            return estimate_shares(
                self.collection,
                data.counters,
                query.level,
                query.own_view,
                among=query.among.value,
                values=places,
                **terms,
            )
        answered = query.among is Denominator.ANSWERED
        within = np.arange(self.collection.domain.size) if answered else None
        sums = estimate_sums(
            self.collection, data.counters, selection.groups, query.level, within=within, **terms
        )
        if isinstance(sums, NoReports) or not self.collection.has_absent:
            return sums
        whose = ANSWERED if answered else ALL_DEVICES
        return replace(sums, estimand=f"{whose}, {ESTIMANDS[sums.terms.target]}")


# -- shares, of whatever they are ----------------------------------------------------------------

#: of a share; the last two only where intervals hold for all values at once
COLUMNS = (
    "figure", "low", "high", "fake_low", "fake_high", "answers", "simultaneous_low",
    "simultaneous_high",
)  # fmt: skip


def side_shares(
    collection: Collection,
    tally: Tally,
    query: EstimateQuery,
    contributions: int,
    places: Counts | None,
) -> ShareEstimates:
    """Return the shares of one side of a comparison, which has reports; by default all."""
    shares = estimate_shares(
        collection,
        tally.counters,
        query.level,
        among=query.among.value,
        values=None if places is None else places.tolist(),
        looks=query.looks,
        contributions=contributions,
        covers=tally.covers,
    )
    if isinstance(shares, NoReports):
        raise ValueError(f"{collection.name}: no reports to compare")  # noqa: TRY004 - not its type
    return shares


def _noise(collection: Collection, evidence: Estimator) -> ResponseDistribution:
    """Return the distribution of a report's support, with what covers add to its variance."""
    if isinstance(evidence, SupportCounts):
        return evidence.noise
    return share_handler(collection).response


def unanswered(labels: Sequence[Value]) -> tuple[Figure, ...]:
    """Return the figures of shares without a report: anything from 0 to 1."""
    return tuple(Figure("share", label, None, 0.0, 1.0, 0.0, 1.0) for label in labels)


def share_figures(
    shares: ShareEstimates,
    query: EstimateQuery,
    labels: Sequence[Value],
    places: Counts,
    *,
    at_once: bool = True,
) -> tuple[Figure, ...]:
    """Return a figure for each label; `places` are theirs among the estimated shares.

    `at_once`: with the intervals that hold for all values at once.
    """
    band = poisoning_band(shares.evidence, query.fakes)
    answers = shares.frequency * answering(shares.evidence)
    columns = [shares.frequency, shares.low, shares.high, band.low, band.high, answers]
    columns += simultaneous(shares) if at_once else ()
    rows: list[list[float]] = np.stack(columns, axis=1)[places].tolist()
    counts: list[int | None] = [None] * len(labels)
    if isinstance(shares.evidence, SupportCounts):
        counts = shares.evidence.counts[places].tolist()
    return tuple(
        Figure("share", label, count=count, **dict(zip(COLUMNS, row, strict=False)))
        for label, row, count in zip(labels, rows, counts, strict=True)
    )


def simultaneous(shares: ShareEstimates) -> Ends:
    """Return the intervals that hold at once for all values, shown or not."""
    low, high = replace(shares.terms, simultaneous=True).interval(shares.evidence)
    if shares.view is View.CONSISTENT:
        return np.clip(low, 0, 1), np.clip(high, 0, 1)
    return low, high


def leading(figures: Sequence[Figure]) -> Value | None:
    """Return the value whose interval is above those of all others, which hold at once."""
    low, high = (
        np.array([getattr(figure, f"simultaneous_{end}") for figure in figures], float)
        for end in ("low", "high")
    )
    first = int(low.argmax())
    leads = len(figures) > 1 and low[first] > np.delete(high, first).max()
    return figures[first].of if leads else None


def answering(evidence: Estimator) -> float:
    """Return how many answers the shares are of: n, or an estimated part of it."""
    if not isinstance(evidence, RatioEstimator):
        return float(evidence.n)
    part = float(evidence.whole.points[0])
    return evidence.n * max(0.0, 1 - part if evidence.inverted else part)


def poisoning_finding(collection: Collection, whole: Tally) -> tuple[bool, str]:
    """Return whether the poisoning test of shares failed, and its message."""
    if whole.covers:
        return False, "Not tested: covers are drawn uniformly, as fakes may be."
    if not whole.counters.any():
        return False, "There are no reports to test."
    result = poisoning_test(collection, whole.counters)
    return result.failed, str(result)
