"""The smooth view: each figure of a time range from all time ranges together.

Values are smoothed each on its own [estimation/smoothing.py], so nothing is stated of all of them
at once, nor of a whole distribution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from veilcount_aggregator.queries.estimate_schema import MeanRow, ShareRow, TimeRangeEstimate
from veilcount_analysis.errors import QueryError
from veilcount_analysis.estimation import View
from veilcount_analysis.estimation.confidence_intervals import Counts, Floats, quantile
from veilcount_analysis.estimation.smoothing import FEWEST, FEWEST_WEEKLY, Smoother
from veilcount_analysis.kinds.estimate_query import Denominator, EstimateQuery, GroupBy
from veilcount_shared import Collection
from veilcount_shared.domain import Features, Number

from .sample_adequacy import Terms, observed_adequacy
from .time_ranges import TimeRange

Row = ShareRow | MeanRow
COLUMNS = ("figure", "low", "high", "fake_low", "fake_high")


def smoothing_problem(collection: Collection, time_ranges: Sequence[TimeRange]) -> str:
    """Return why there is no smooth view: a person is in every time range, or twice in one."""
    if isinstance(collection.domain, Features):
        return "several numbers have no smooth view: give view=raw"
    if collection.is_trend:
        return "a trend is of all reports so far already: give view=raw"
    if collection.answering >= collection.periods:
        return "it takes a definition whose `answers` are fewer than its periods: give view=raw"
    contributions = max(each.contributions(collection) for each in time_ranges)
    if contributions > 1:
        return f"a person may answer {contributions} times in a time range: give a shorter by"
    if len(time_ranges) < FEWEST:
        return f"it takes {FEWEST} time ranges, here are {len(time_ranges)}: give a shorter by"
    return ""


def smoothed(
    collection: Collection, query: EstimateQuery, time_ranges: Sequence[TimeRangeEstimate]
) -> list[TimeRangeEstimate]:
    """Return time ranges with smoothed figures; those without reports stay as they are."""
    answered = [place for place, each in enumerate(time_ranges) if each.n]
    if len(answered) < FEWEST:
        fix = f"it takes {FEWEST} time ranges with reports, here are {len(answered)}: give view=raw"
        raise QueryError("view", View.SMOOTH.value, fix)
    raw = np.full((len(COLUMNS), len(_rows(time_ranges[answered[0]])), len(time_ranges)), np.nan)
    for place in answered:
        raw[:, :, place] = np.array(list(map(_columns, _rows(time_ranges[place])))).T
    errors = _errors(collection, query, raw, np.array([each.n for each in time_ranges]))
    found = _smooth(raw, query, errors)
    result = list(time_ranges)
    for place in answered:
        rows = zip(_rows(time_ranges[place]), found[:, :, place].T.tolist(), strict=True)
        figures = [_row(row, time_ranges[place].n, columns) for row, columns in rows]
        result[place] = _with_rows(collection, query, time_ranges[place], figures)
    return result


def _errors(collection: Collection, query: EstimateQuery, raw: Floats, n: Counts) -> Floats:
    """Return standard errors as of independent figures.

    Persons who answer in several periods, drawn at random, are in the samples of all of these: the
    part of the variance that is sampling, at most a quarter of the squared range, is correlated.
    """
    _, low, high, *_ = raw
    variance = ((high - low) / 2 / quantile(1 - query.level)) ** 2
    alike = (collection.answering - 1) / (collection.periods - 1)
    domain = collection.domain
    width = float(domain.high - domain.low) if isinstance(domain, Number) else 1.0
    if query.among is Denominator.ALL:
        sampling = np.minimum(variance, width**2 / (4 * np.maximum(n, 1)))
    else:
        sampling = variance  # n counts others too
    others = np.count_nonzero(n) - 1
    errors: Floats = np.sqrt(variance + others * alike * sampling)
    return errors


def _smooth(raw: Floats, query: EstimateQuery, errors: Floats) -> Floats:
    """Return smoothed columns of each figure (second axis) at each time (third).

    The fake-report band is moved by what fakes would move the smoothed figure.
    """
    figure, _, _, *fakes = raw
    reach = quantile(1 - query.level)
    weekly = query.by is GroupBy.DAY and figure.shape[1] >= FEWEST_WEEKLY
    smoother = Smoother.fit(figure, errors, weekly=weekly)
    smooth, deviation = smoother.smooth(figure)
    half = reach * deviation
    moved = [smooth + smoother.smooth(fake - figure)[0] for fake in fakes]
    return np.stack([smooth, smooth - half, smooth + half, *moved])


def _rows(time_range: TimeRangeEstimate) -> list[Row]:
    others = (time_range.absent, time_range.mean)
    return [*time_range.values, *(each for each in others if each is not None)]


def _columns(row: Row) -> tuple[float | None, ...]:
    figure = row.mean if isinstance(row, MeanRow) else row.frequency
    return figure, row.low, row.high, row.fake_low, row.fake_high


def _row(row: Row, n: int, columns: Sequence[float]) -> Row:
    figure, low, high, fake_low, fake_high = columns
    if isinstance(row, MeanRow):
        return MeanRow(figure, low, high, fake_low, fake_high)
    return ShareRow(row.value, figure, figure * n, low, high, fake_low, fake_high, row.count)


def _with_rows(
    collection: Collection, query: EstimateQuery, each: TimeRangeEstimate, figures: list[Row]
) -> TimeRangeEstimate:
    widest = max(row.high - row.low for row in figures)
    adequacy = observed_adequacy(collection, each.n, widest / 2, Terms(query.level, sampled=True))
    shares = [row for row in figures if isinstance(row, ShareRow)]
    return replace(
        each,
        usable=adequacy.usable,
        adequacy=adequacy.text,
        estimand=f"{each.estimand}, smoothed over {query.by}s",
        values=shares[: len(each.values)],
        absent=each.absent and shares[-1],
        mean=next((row for row in figures if isinstance(row, MeanRow)), None),
        leader=None,
        spread=None,
    )
