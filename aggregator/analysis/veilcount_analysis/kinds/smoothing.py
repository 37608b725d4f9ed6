"""The smooth view: each figure of a time range from all time ranges together.

Values are smoothed each on its own [estimation/smoothing.py], so nothing is stated of all of them
at once, nor of a whole distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from veilcount_shared import Collection

from ..errors import QueryError
from ..estimation import View
from ..estimation.confidence_intervals import Counts, Floats, quantile
from ..estimation.smoothing import FEWEST, FEWEST_WEEKLY, Smoother
from .estimate_query import Denominator, EstimateQuery, GroupBy
from .kind import Kind
from .results import Figure, RangeEstimate, RangeFigures
from .sample_adequacy import Terms, observed_adequacy
from .time_ranges import TimeRange

COLUMNS = ("figure", "low", "high", "fake_low", "fake_high")
SMOOTHED = frozenset({"share", "absent", "mean"})
#: what is stated with the bands: in the period of a rise they may cover half of the time
BANDS = (
    "The bands of smoothed figures hold over all periods together; after a sudden change read the"
    " raw figure."
)


def smoothing_problem(kind: Kind[Any, Any], time_ranges: Sequence[TimeRange]) -> str:
    """Return why there is no smooth view: a person is in every time range, or twice in one."""
    collection = kind.collection
    if (problem := kind.parameter_problem("view=smooth")) or kind.smooths:
        return problem
    if collection.answering >= collection.periods:
        return "it takes a definition whose `answers` are fewer than its periods: give view=raw"
    contributions = max(time_range.contributions(collection) for time_range in time_ranges)
    if contributions > 1:
        return f"a person may answer {contributions} times in a time range: give a shorter by"
    if len(time_ranges) < FEWEST:
        return f"it takes {FEWEST} time ranges, here are {len(time_ranges)}: give a shorter by"
    return ""


def smooth_figures(
    kind: Kind[Any, Any], query: EstimateQuery, ranges: Sequence[RangeEstimate]
) -> list[RangeEstimate]:
    """Return time ranges with smoothed figures; those without reports stay as they are."""
    if kind.smooths:
        return list(ranges)
    answered = [place for place, estimate in enumerate(ranges) if estimate.result.n]
    if len(answered) < FEWEST:
        fix = f"it takes {FEWEST} time ranges with reports, here are {len(answered)}: give view=raw"
        raise QueryError("view", View.SMOOTH.value, fix)
    raw = np.full((len(COLUMNS), len(_smoothable(ranges[answered[0]])), len(ranges)), np.nan)
    for place in answered:
        raw[:, :, place] = np.array(list(map(_columns, _smoothable(ranges[place])))).T
    n = np.array([estimate.result.n for estimate in ranges])
    smooth = _smooth(raw, query, _errors(kind, query, raw, n))
    results = list(ranges)
    for place in answered:
        columns = smooth[:, :, place].T.tolist()
        results[place] = _with_columns(kind, query, ranges[place], columns)
    return results


def _errors(kind: Kind[Any, Any], query: EstimateQuery, raw: Floats, n: Counts) -> Floats:
    """Return standard errors as of independent figures.

    Persons who answer in several periods, drawn at random, are in the samples of all of these: the
    part of the variance that is sampling, at most a quarter of the squared range, is correlated.
    """
    _, low, high, *_ = raw
    variance = ((high - low) / 2 / quantile(1 - query.level)) ** 2
    if query.among is Denominator.ALL:
        sampling = np.minimum(variance, kind.range_width**2 / (4 * np.maximum(n, 1)))
    else:
        sampling = variance  # n counts others too
    correlated = (np.count_nonzero(n) - 1) * _correlation(kind.collection)
    errors: Floats = np.sqrt(variance + correlated * sampling)
    return errors


def _correlation(collection: Collection) -> float:
    """Return the share of persons of one period who answer in another one too."""
    return (collection.answering - 1) / (collection.periods - 1)


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


def _smoothable(estimate: RangeEstimate) -> list[Figure]:
    return [figure for figure in estimate.result.figures if figure.kind in SMOOTHED]


def _columns(figure: Figure) -> tuple[float | None, ...]:
    return figure.figure, figure.low, figure.high, figure.fake_low, figure.fake_high


def _with_columns(
    kind: Kind[Any, Any],
    query: EstimateQuery,
    estimate: RangeEstimate,
    columns: Sequence[Sequence[float]],
) -> RangeEstimate:
    result, pairs = estimate.result, zip(_smoothable(estimate), columns, strict=True)
    figures = tuple(_moved(figure, result.n, row) for figure, row in pairs)
    half_width = max(figure.width for figure in figures) / 2
    terms = Terms(query.level, sampled=True)
    adequacy = observed_adequacy(kind.error_model, result.n, half_width, terms)
    estimand = f"{result.estimand}, smoothed over {query.by}s"
    return replace(estimate, adequacy=adequacy, result=RangeFigures(result.n, estimand, figures))


def _moved(figure: Figure, n: int, columns: Sequence[float]) -> Figure:
    smooth, low, high, fake_low, fake_high = columns
    answers = None if figure.kind == "mean" else smooth * n
    return Figure(
        figure.kind, figure.of, smooth, low, high, fake_low, fake_high,
        answers=answers, count=figure.count,
    )  # fmt: skip
