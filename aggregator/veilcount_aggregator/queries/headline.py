"""The finding of a collection in a line: of a query, and the newest for the overview."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from veilcount_analysis.kinds.estimate import estimate_series
from veilcount_analysis.kinds.estimate_query import EstimateQuery
from veilcount_analysis.kinds.headline import Headline
from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.kinds.results import Figure
from veilcount_analysis.kinds.sample_adequacy import LISTED, SampleAdequacy, Terms, sample_adequacy
from veilcount_analysis.series.series import Series

from .estimate import RequestedSeries
from .leading_difference import leading_difference
from .snapshot import Snapshot

FEW = 5  # largest values of a long list: the rest leads none of them


def headline(
    snapshot: Snapshot,
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


def latest_headline(snapshot: Snapshot, series: Series, n: int) -> tuple[SampleAdequacy, str]:
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
