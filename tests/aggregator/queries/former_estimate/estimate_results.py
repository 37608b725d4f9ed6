"""The estimates of one time range: shares of values or of groups of values; of a number its mean,
distribution and shares of ranges. Also the reports that n does not include: rejected ones,
and those that devices lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from veilcount_aggregator.intake.pipeline import LOSS
from veilcount_aggregator.queries.estimate_schema import (
    BucketRow,
    CurveRow,
    LossRow,
    MeanRow,
    MomentRow,
    QuantileRow,
    ShareRow,
    Spread,
    TimeRangeEstimate,
)
from veilcount_aggregator.store import VERDICT, ServiceCounter
from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation import (
    LookCount,
    MeanEstimate,
    NoReports,
    ShareEstimates,
    View,
    base_cut,
    poisoning_band,
)
from veilcount_analysis.estimation.cdf import BucketHistogram
from veilcount_analysis.estimation.confidence_intervals import Counts, Ends
from veilcount_analysis.estimation.estimator import Estimator
from veilcount_analysis.estimation.fieller import RatioEstimator
from veilcount_analysis.estimation.proportions import SupportCounts
from veilcount_analysis.estimation.range_queries import RangeEstimator
from veilcount_analysis.estimation.results import ESTIMANDS
from veilcount_analysis.kinds.estimate_query import Denominator, EstimateQuery
from veilcount_analysis.mechanisms import (
    estimate_number,
    estimate_shares,
    estimate_sums,
    handler_of,
    share_handler,
)
from veilcount_analysis.mechanisms.estimates import ALL_DEVICES, ANSWERED, TermOptions
from veilcount_analysis.query_params import parse_range
from veilcount_shared import Collection
from veilcount_shared.report import MAX_BUCKET

from .domain_values import Value, value_at
from .sample_adequacy import SampleAdequacy, Terms, observed_adequacy, sample_adequacy

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
class RangeFigures:
    """The figures of one time range, and what they estimate: rows of shares, or of a number."""

    n: int
    estimand: str
    values: list[ShareRow]
    absent: ShareRow | None = None
    mean: MeanRow | None = None
    spread: Spread | None = None
    leader: Value | None = None
    moments: tuple[MomentRow, ...] = ()


def presence_is_hidden(collection: Collection) -> bool:
    """Whether the presence of an answer is hidden, among answers that absence is one of."""
    return collection.has_absent


def share_figures(
    collection: Collection,
    counters: Counts,
    query: EstimateQuery,
    shown: ValueSelection,
    contributions: int,
) -> RangeFigures:
    """Return the shares of the selected values; a consistent view is of all, and some are shown."""
    whole = query.view is View.CONSISTENT and shown.groups is None
    terms = TermOptions(looks=query.looks, contributions=contributions)
    if shown.groups is not None:
        found = _sums(collection, counters, query, shown.groups, terms)
    else:
        found = estimate_shares(
            collection,
            counters,
            query.level,
            query.own_view,
            among=query.among.value,
            values=None if whole else shown.places.tolist(),
            **terms,
        )
    if isinstance(found, NoReports):
        empty = [ShareRow(label, None, None, 0.0, 1.0, 0.0, 1.0) for label in shown.labels]
        return RangeFigures(0, found.estimand, empty)
    places = shown.places if whole else np.arange(len(shown.labels))
    together = _simultaneous(found)
    rows, absent = _rows(found, query, shown.labels, places, together), None
    if found.absent is not None:
        alone = np.arange(1)
        absent = _rows(found.absent, query, (ABSENT,), alone, _simultaneous(found.absent))[0]
    chosen = query.top or query.values or query.groups
    is_page = not chosen and len(places) < collection.domain.size
    leader = None if is_page else _leader(found, shown.labels, places, together)
    return RangeFigures(found.n, found.estimand, rows, absent, leader=leader)


def _simultaneous(found: ShareEstimates) -> Ends:
    """Return the intervals that hold at once for all values, shown or not."""
    low, high = replace(found.terms, simultaneous=True).interval(found.evidence)
    if found.view is View.CONSISTENT:
        return np.clip(low, 0, 1), np.clip(high, 0, 1)
    return low, high


def _leader(
    found: ShareEstimates, labels: tuple[Value, ...], some: Counts, together: Ends
) -> Value | None:
    """Return the value whose interval is above those of all others, which hold at once."""
    low, high = together
    first, *others = np.argsort(-found.evidence.points[some], kind="stable").tolist()
    leads = others and low[some][first] > high[some][others].max()
    return labels[first] if leads else None


def support_probabilities(collection: Collection) -> tuple[float | None, float | None]:
    """Return how likely a report supports its own value, and another one; None of a number."""
    if not handler_of(collection.mechanism).has_shares:
        return None, None
    response = share_handler(collection).response
    return response.P, response.Q


def adequacy_of(
    collection: Collection,
    query: EstimateQuery,
    figures: RangeFigures | TimeRangeEstimate,
    contributions: int,
) -> SampleAdequacy:
    """Return whether the sample is large enough; of those who answered, by their own intervals."""
    terms = Terms(query.level, contributions == 1)
    whole = query.among is Denominator.ALL and query.looks is LookCount.ONE
    whole = whole and not collection.is_trend  # whose figures are of some of the reports
    if whole or not figures.n:
        return sample_adequacy(collection, figures.n, terms)
    rows = [figures.mean] if figures.mean else figures.values
    widest = max(row.high - row.low for row in rows)
    return observed_adequacy(collection, figures.n, widest / 2, terms)


def _sums(
    collection: Collection,
    counters: Counts,
    query: EstimateQuery,
    groups: tuple[Counts, ...],
    terms: TermOptions,
) -> ShareEstimates | NoReports:
    answered = query.among is Denominator.ANSWERED
    within = np.arange(collection.domain.size) if answered else None
    found = estimate_sums(collection, counters, groups, query.level, within=within, **terms)
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
        return np.arange(min(top, collection.domain.size)), 0
    above = base_cut(raw.frequency, share_handler(collection).response, raw.n)
    largest = np.argsort(-raw.frequency, kind="stable")
    places = above if view is View.CONSISTENT else largest
    return places[:top], len(above)


def _rows(
    found: ShareEstimates,
    query: EstimateQuery,
    labels: tuple[Value, ...],
    some: Counts,
    together: Ends,
) -> list[ShareRow]:
    fakes = poisoning_band(found.evidence, query.fakes)
    columns = (
        found.frequency,
        found.frequency * answering(found.evidence),
        found.low,
        found.high,
        fakes.low,
        fakes.high,
    )
    figures = np.stack(columns, axis=1)[some].tolist()
    ends = np.stack(together, axis=1)[some].tolist()
    if isinstance(found.evidence, SupportCounts):
        counts = found.evidence.counts[some].tolist()
    else:
        counts = [None] * len(labels)
    rows = zip(labels, figures, counts, ends, strict=True)
    return [ShareRow(label, *(*row, count, *both)) for label, row, count, both in rows]


def answering(evidence: Estimator) -> float:
    """Return how many answers the shares are of: n, or an estimated part of it."""
    if not isinstance(evidence, RatioEstimator):
        return float(evidence.n)
    part = float(evidence.whole.points[0])
    return evidence.n * max(0.0, 1 - part if evidence.inverted else part)


SHARES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
Bounds = tuple[float, float]


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


def number_figures(
    collection: Collection,
    counters: Counts,
    query: EstimateQuery,
    ranges: Sequence[Bounds],
    contributions: int,
) -> RangeFigures:
    """Return the mean of a number, and the distribution and ranges where the measure has them."""
    found = estimate_number(
        collection, counters, query.level, contributions=contributions, looks=query.looks
    )
    if isinstance(found, NoReports):
        low, high = float(found.low[0]), float(found.high[0])
        return RangeFigures(0, found.estimand, [], mean=MeanRow(None, low, high, low, high))
    mean, rows, spread = _mean(found, query), list[ShareRow](), None
    if isinstance(found, BucketHistogram):
        spread = _spread(found)
        if isinstance(found, RangeEstimator):
            rows = [_range(found, each, query) for each in ranges]
    return RangeFigures(found.n, found.estimand, rows, mean=mean, spread=spread)


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


WHY = {
    "aged": "expired before they were sent",
    "evicted": "were evicted from the full outbox",
    "corrupt": "were corrupt",
}


@dataclass(frozen=True, slots=True)
class UncountedReports:
    """The service counters of one series."""

    counts: Mapping[ServiceCounter, int]

    @classmethod
    def from_counts(
        cls, counts: Mapping[ServiceCounter, int], fingerprint: str
    ) -> UncountedReports:
        """Select the counters of a series."""
        return cls({note: n for note, n in counts.items() if note.fingerprint == fingerprint})

    def verdicts(self, periods: range) -> dict[str, int]:
        """Return the number of rejected reports of these periods, by verdict."""
        found = Counter[str]()
        for note, number in self.counts.items():
            if note.what == VERDICT and note.period in periods:
                found[note.word] += number
        return dict(sorted(found.items()))

    def unplaced(self) -> dict[str, int]:
        """Return the number of rejected reports whose period is invalid or unread, by verdict."""
        return self.verdicts(range(-1, 0))

    def losses(self) -> list[LossRow]:
        """Return the losses that devices reported, over the whole campaign."""
        return list(self._losses())

    def _losses(self) -> Iterator[LossRow]:
        for note, devices in sorted(self.counts.items()):
            if note.what == LOSS:
                reason, _, digits = note.word.partition(":")
                yield _row(reason, int(digits), devices)


def _row(reason: str, digits: int, devices: int) -> LossRow:
    least = 10 ** (digits - 1)
    most = None if digits >= MAX_BUCKET else 10 * least - 1
    many = f"{least:,} or more" if most is None else f"{least:,} to {most:,}"
    whose = "1 device" if devices == 1 else f"{devices:,} devices"
    text = f"{many} reports of {whose}{'' if devices == 1 else ' each'} {WHY.get(reason, reason)}"
    return LossRow(reason, devices, least * devices, None if most is None else most * devices, text)
