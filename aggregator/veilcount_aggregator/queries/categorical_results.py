"""Results of categorical collections: shares of values or of groups of values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from veilcount_shared import Collection
from veilcount_shared.collection import Presence

from ..estimation import NoReports, ShareEstimates, View, base_cut, poisoning_band
from ..estimation.confidence_intervals import Counts
from ..estimation.estimator import Estimator
from ..estimation.fieller import RatioEstimator
from ..estimation.results import ESTIMANDS
from ..mechanisms import estimate_shares, estimate_sums, share_handler
from ..mechanisms.estimates import ALL_DEVICES, ANSWERED
from .domain_values import Value, size_of, value_at
from .estimate_query import Denominator, EstimateQuery
from .estimate_schema import ShareRow

ABSENT = "absent"


@dataclass(frozen=True, slots=True, eq=False)
class ValueSelection:
    """The selected values of a series, or groups of values."""

    labels: tuple[Value, ...]
    places: Counts
    groups: tuple[Counts, ...] | None = None

    @classmethod
    def from_places(cls, collection: Collection, places: Counts) -> ValueSelection:
        """Select the values at these places."""
        return cls(tuple(value_at(collection, place) for place in places.tolist()), places)


@dataclass(frozen=True, slots=True)
class ShareResult:
    """The rows of a result and what they estimate."""

    n: int
    estimand: str
    rows: list[ShareRow]
    absent: ShareRow | None = None


def presence_is_hidden(collection: Collection) -> bool:
    """Whether the presence of an answer is hidden."""
    return collection.presence is Presence.HIDDEN


def share_result(
    collection: Collection,
    counters: Counts,
    query: EstimateQuery,
    shown: ValueSelection,
    contributions: int,
) -> ShareResult:
    """Return the rows of the selected values."""
    found = estimate_selection(collection, counters, query, shown, contributions)
    if isinstance(found, NoReports):
        return ShareResult(0, found.estimand, [_empty(label) for label in shown.labels])
    some = shown.places if _whole(query, shown) else np.arange(len(shown.labels))
    rows = _rows(found, query, shown.labels, some)
    return ShareResult(found.n, found.estimand, rows, _absent(found, query))


def _absent(found: ShareEstimates, query: EstimateQuery) -> ShareRow | None:
    if found.absent is None:
        return None
    return _rows(found.absent, query, (ABSENT,), np.arange(1))[0]


def estimate_selection(
    collection: Collection,
    counters: Counts,
    query: EstimateQuery,
    shown: ValueSelection,
    contributions: int,
) -> ShareEstimates | NoReports:
    """Return the estimate of the selected values, or (consistent view) of all values."""
    if shown.groups is not None:
        return _sums(collection, counters, query, shown.groups, contributions)
    return estimate_shares(
        collection,
        counters,
        query.level,
        query.view.value,
        simultaneous=query.is_simultaneous,
        looks=query.looks,
        contributions=contributions,
        among=query.among.value,
        values=None if _whole(query, shown) else shown.places.tolist(),
    )


def _whole(query: EstimateQuery, shown: ValueSelection) -> bool:
    """A consistent view is of all values, even if few are shown."""
    return query.view is View.CONSISTENT and shown.groups is None


def _sums(
    collection: Collection,
    counters: Counts,
    query: EstimateQuery,
    groups: tuple[Counts, ...],
    contributions: int,
) -> ShareEstimates | NoReports:
    answered = query.among is Denominator.ANSWERED
    found = estimate_sums(
        collection,
        counters,
        groups,
        query.level,
        within=np.arange(size_of(collection)) if answered else None,
        simultaneous=query.is_simultaneous,
        looks=query.looks,
        contributions=contributions,
    )
    if isinstance(found, NoReports) or not presence_is_hidden(collection):
        return found
    whose = ANSWERED if answered else ALL_DEVICES
    return replace(found, estimand=f"{whose}, {ESTIMANDS[found.terms.target]}")


def ranked(collection: Collection, counters: Counts, top: int, view: View) -> tuple[Counts, int]:
    """Return the places of a top list, the largest share first, and how many stand out from noise.

    The consistent view lists no more than those that stand out.
    """
    raw = estimate_shares(collection, counters)
    if not isinstance(raw, ShareEstimates):
        return np.arange(min(top, size_of(collection))), 0
    above = base_cut(raw.frequency, share_handler(collection).response, raw.n)
    largest = np.argsort(-raw.frequency, kind="stable")
    places = above if view is View.CONSISTENT else largest
    return places[:top], len(above)


def _rows(
    found: ShareEstimates, query: EstimateQuery, labels: tuple[Value, ...], some: Counts
) -> list[ShareRow]:
    fakes = poisoning_band(found.evidence, query.fakes)
    columns = (
        found.frequency[some],
        found.frequency[some] * answering(found.evidence),
        found.low[some],
        found.high[some],
        fakes.low[some],
        fakes.high[some],
    )
    figures = np.stack(columns, axis=1).tolist()
    return [ShareRow(label, *row) for label, row in zip(labels, figures, strict=True)]


def answering(evidence: Estimator) -> float:
    """Return how many answers the shares are of: n, or an estimated part of it."""
    if not isinstance(evidence, RatioEstimator):
        return float(evidence.n)
    part = float(evidence.whole.points[0])
    return evidence.n * max(0.0, 1 - part if evidence.inverted else part)


def _empty(label: Value) -> ShareRow:
    return ShareRow(label, None, None, 0.0, 1.0, 0.0, 1.0)
