"""The values that a comparison shows: the same ones on both sides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from veilcount_shared.domain import Number

from ..errors import QueryError
from ..estimation import NoReports, ShareEstimates
from ..estimation.confidence_intervals import Counts, Floats
from ..mechanisms import estimate_shares
from .comparison_sides import SideData
from .domain_values import Value, places_of, size_of, value_at
from .estimate_query import PAGE_SIZE, EstimateQuery


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The same values on both sides; None: one mean. `picked`: for their estimated shares."""

    values: Sequence[Value | None]
    first: Counts | None = None
    second: Counts | None = None
    picked: bool = False


def pairs(a: SideData, b: SideData, query: EstimateQuery) -> Pairs:
    """Return the requested values, all of them, or the most frequent on both sides."""
    one, two = a.series.collection, b.series.collection
    if isinstance(one.domain, Number) or isinstance(two.domain, Number):
        if isinstance(one.domain, Number) != isinstance(two.domain, Number):
            raise QueryError("b", list(b.side.words), "one side is of a number, the other is not")
        return Pairs([None])
    first, second = _common(a, b, query)
    picked = not query.values and (query.top is not None or len(first) > PAGE_SIZE)
    if picked:
        most = _most_frequent(a, b, first, second)[: query.top or PAGE_SIZE]
        first, second = first[most], second[most]
    return Pairs([value_at(one, place) for place in first.tolist()], first, second, picked)


def _common(a: SideData, b: SideData, query: EstimateQuery) -> tuple[Counts, Counts]:
    """Return where the values that both sides have are, on each."""
    one, two = a.series.collection, b.series.collection
    places = np.arange(size_of(one))
    if query.values:
        places = places_of(one, query.values).places
    if one.domain == two.domain:
        return places, places
    known = {_key(value_at(two, place)): place for place in range(size_of(two))}
    keys = [_key(value_at(one, place)) for place in places.tolist()]
    both = [place for place, key in enumerate(keys) if key in known]
    if not both:
        raise QueryError("b", list(b.side.words), "no value is possible on both sides")
    return places[both], np.array([known[keys[place]] for place in both], np.int64)


def _key(value: Value) -> str:
    """Return what two definitions have in common of a value; the order of parts is none of it."""
    return json.dumps(value, sort_keys=True)


def _most_frequent(a: SideData, b: SideData, first: Counts, second: Counts) -> Counts:
    """Return the values' order by both sides' estimates, each weighted by its precision.

    This average is uncorrelated with the difference, so that picking by it leaves the differences
    of the picked values as they are. Picked by one side, its errors would be picked with them.
    """
    shares, precisions = zip(_precision(a, first), _precision(b, second), strict=True)
    average = (shares[0] * precisions[0] + shares[1] * precisions[1]) / sum(precisions)
    return np.argsort(-average, kind="stable")


def _precision(read: SideData, places: Counts) -> tuple[Floats, Floats]:
    found = side_shares(read)
    error = found.evidence.error(found.terms.target)
    return found.frequency[places], 1 / error[places] ** 2


def side_shares(read: SideData, level: float = 0.95, **options: Any) -> ShareEstimates:
    """Return the shares of a side that has reports; the options are those of `estimate_shares`."""
    collection = read.series.collection
    found = estimate_shares(
        collection, read.counters, level, contributions=read.contributions, **options
    )
    if isinstance(found, NoReports):
        raise ValueError(f"{collection.name}: no reports to compare")  # noqa: TRY004 - not its type
    return found
