"""The finding of a collection in a line: its largest share or its mean, with the interval.

The interval is that of the value on its own; that a value leads is decided for all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from veilcount_analysis.kinds.registry import kind_of
from veilcount_analysis.kinds.sample_adequacy import LISTED, SampleAdequacy, Terms, sample_adequacy
from veilcount_analysis.mechanisms import estimate_mean
from veilcount_analysis.series.series import Series
from veilcount_analysis.text.number_format import FigureFormat
from veilcount_analysis.text.result_columns import value_name
from veilcount_shared.domain import Choice, Cross, Number

from ...queries import EstimateQuery, Snapshot, estimate
from ...queries.estimate import RequestedSeries
from ...queries.estimate_results import adequacy_of
from ...queries.estimate_schema import (
    MeanRow,
    MomentRow,
    SeriesEstimate,
    ShareRow,
    TimeRangeEstimate,
)

FEW = 5  # largest values of a long list: the rest leads none of them
ONE_DIGIT = 5  # times an interval: of its half, one digit is shown
AT_ONCE = "all values compared at once"


@dataclass(frozen=True, slots=True)
class Headline:
    """A headline, and what was decided for all values at once."""

    text: str
    decision: str = ""


def headline(found: SeriesEstimate, time_range: TimeRangeEstimate) -> Headline:
    """Return the finding of a time range with reports."""
    if time_range.mean is not None:
        return Headline(mean_headline(time_range.mean))
    if time_range.moments:
        return _strongest_correlation(time_range.moments)
    rows = sorted(time_range.values, key=lambda row: -(row.frequency or 0.0))
    yes = next((row for row in rows if row.value is True), None)
    if yes is not None:
        return Headline(share_headline(yes))
    if found.search is not None:
        return _found_strings(rows)
    if found.stand_out == 0:
        return Headline("No value stands out from noise", f"Decided with {AT_ONCE}.")
    return _largest(rows, leads=time_range.leader is not None)


def _largest(rows: Sequence[ShareRow], *, leads: bool) -> Headline:
    """Return the largest share; where it does not lead, the second too."""
    first = share_headline(rows[0])
    if len(rows) == 1:
        return Headline(first)
    if leads:
        return Headline(
            first, f"The largest share is that of {value_name(rows[0].value)}, {AT_ONCE}."
        )
    second = share_headline(rows[1])
    return Headline(f"{first}; {second}", f"Which is larger is not significant, {AT_ONCE}.")


def _strongest_correlation(moments: Sequence[MomentRow]) -> Headline:
    rows = [row for row in moments if row.kind == "correlation" and row.figure is not None]
    if not rows:
        return Headline("No two numbers vary enough for a correlation")
    row = max(rows, key=lambda row: abs(row.figure or 0.0))
    figure, low, high = (f"{each or 0.0:.2f}" for each in (row.figure, row.low, row.high))
    return Headline(f"Correlation of {' and '.join(row.of)} {figure}, {low} to {high}")


def _found_strings(rows: Sequence[ShareRow]) -> Headline:
    """Return the largest two; one that nobody looked for may be larger."""
    if not rows:
        return Headline("No string is found yet")
    return Headline("; ".join(map(share_headline, rows[:2])))


def mean_headline(row: MeanRow) -> str:
    """Return the mean with its interval."""
    written = FigureFormat.for_widths([ONE_DIGIT * (row.high - row.low)], of_shares=False)
    return f"Mean {written.figure(row.mean or 0.0)}, {written.ends(row.low, row.high)}"


def share_headline(row: ShareRow) -> str:
    """Return a share with its interval, both as far as a share can be."""
    written = FigureFormat.for_widths([ONE_DIGIT * (row.high - row.low)], of_shares=True)
    share, low, high = (
        min(max(each, 0.0), 1.0) for each in (row.frequency or 0.0, row.low, row.high)
    )
    name = "yes" if row.value is True else value_name(row.value)
    return f"{written.figure(share)} {name}, {written.ends(low, high)}"


def latest_headline(snapshot: Snapshot, series: Series, n: int) -> tuple[SampleAdequacy, str]:
    """Return whether n reports of a series are enough, and the headline if they are."""
    collection = series.collection
    if collection.is_trend:
        return _trend_headline(snapshot, series)
    sampled = collection.answering * collection.per_period == 1
    adequacy = sample_adequacy(kind_of(collection).error_model, n, Terms(sampled=sampled))
    if not adequacy.usable:
        return adequacy, ""
    query = EstimateQuery(series=(series.fingerprint,))
    if isinstance(collection.domain, Number):
        return adequacy, mean_headline(_mean(RequestedSeries.check(snapshot, series, query)))
    if isinstance(collection.domain, Choice | Cross) and collection.domain.size > LISTED:
        query = replace(query, top=FEW)
    (found,) = estimate(snapshot, collection.name, query).series
    return adequacy, headline(found, found.time_ranges[-1]).text


def _trend_headline(snapshot: Snapshot, series: Series) -> tuple[SampleAdequacy, str]:
    """Return the same of a trend: by the intervals of the newest share, not by all reports."""
    query = EstimateQuery(series=(series.fingerprint,))
    (found,) = estimate(snapshot, series.collection.name, query).series
    newest = found.time_ranges[-1]
    adequacy = adequacy_of(series.collection, query, newest)
    return adequacy, headline(found, newest).text if adequacy.usable else ""


def _mean(request: RequestedSeries) -> MeanRow:
    """Return the mean alone, without the distribution, which takes longer."""
    collection, scope = request.series.collection, request.scope
    counters = request.source.tally(scope.whole.periods, scope.cells).counters
    contributions = scope.whole.contributions(collection)
    mean = estimate_mean(collection, counters, contributions=contributions)
    return MeanRow(mean.mean, mean.low, mean.high, mean.low, mean.high)
