"""Results of numeric collections: mean, distribution, shares of ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from veilcount_shared import Collection

from ..errors import QueryError
from ..estimation import MeanEstimate, poisoning_band
from ..estimation.cdf import BucketHistogram
from ..estimation.confidence_intervals import Counts, Floats
from ..estimation.range_queries import RangeEstimator
from ..mechanisms import estimate_number, handler_of
from .estimate_query import EstimateQuery
from .estimate_schema import BucketRow, CurveRow, MeanRow, QuantileRow, ShareRow, Spread
from .query_params import parse_range

SHARES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class NumericResult:
    """The mean, and the distribution and ranges where the measure has them."""

    n: int
    estimand: str
    mean: MeanRow
    spread: Spread | None
    rows: list[ShareRow]


def ranges_of(collection: Collection, words: Sequence[str]) -> list[Bounds]:
    """Return the ranges whose shares are requested, or refuse them."""
    if words and not handler_of(collection.mechanism).has_ranges:
        raise QueryError(
            "values", list(words), 'only a number with measure = "ranges" has shares: remove it'
        )
    found = []
    for each in words:
        low, high = parse_range("values", each)
        found.append((float(low), float(high)))
    return found


def numeric_result(
    collection: Collection,
    counters: Counts,
    query: EstimateQuery,
    ranges: Sequence[Bounds],
    contributions: int,
) -> NumericResult:
    """Return the estimates of a number."""
    found = estimate_number(
        collection, counters, query.level, contributions=contributions, looks=query.looks
    )
    if isinstance(found, MeanEstimate):
        mean = _mean(found, query)
        return NumericResult(found.n, found.estimand, mean, None, [])
    if isinstance(found, BucketHistogram):
        mean = _mean(found, query)
        rows = (
            [_range(found, each, query) for each in ranges]
            if isinstance(found, RangeEstimator)
            else []
        )
        return NumericResult(found.n, found.estimand, mean, _spread(found), rows)
    low, high = float(found.low[0]), float(found.high[0])
    return NumericResult(0, found.estimand, MeanRow(None, low, high, low, high), None, [])


def _mean(found: MeanEstimate | BucketHistogram, query: EstimateQuery) -> MeanRow:
    low, high = found.low, found.high
    if found.evidence is not None:
        fakes = poisoning_band(found.evidence, query.fakes)
        low, high = float(fakes.low[0]), float(fakes.high[0])
    return MeanRow(found.mean, found.low, found.high, low, high)


def _range(found: RangeEstimator, bounds: Bounds, query: EstimateQuery) -> ShareRow:
    share = found.between(*bounds)
    value = {"from": bounds[0], "below": bounds[1]}
    if share.share is None or share.evidence is None:
        return ShareRow(value, None, None, share.low, share.high, 0.0, 1.0)
    fakes = poisoning_band(share.evidence, query.fakes)
    low, high = float(fakes.low[0]), float(fakes.high[0])
    return ShareRow(value, share.share, share.share * found.n, share.low, share.high, low, high)


def _spread(found: BucketHistogram) -> Spread:
    curve = found.curve
    edges = curve.edges.tolist()
    share = [None] * len(edges) if curve.share is None else curve.share.tolist()
    points = zip(edges, share, curve.low.tolist(), curve.high.tolist(), strict=True)
    frequency = [] if found.frequency is None else found.frequency.tolist()
    ends = pairwise(edges)
    return Spread(
        curve.covers,
        [BucketRow(*bucket, each) for bucket, each in zip(ends, frequency, strict=False)],
        [CurveRow(*row) for row in points],
        [QuantileRow(q.share, q.value, q.low, q.high) for q in map(curve.quantile, SHARES)],
    )


def quarter_shares(frequency: Floats) -> tuple[float, ...]:
    """Return the shares of the quarters of a range, from those of its buckets."""
    return tuple(float(part.sum()) for part in np.split(frequency, 4))
