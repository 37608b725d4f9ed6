"""Parts of a result, each small: a table is written part by part.

100,000 figures are some 30 MB as types, and ten times that as dictionaries. So no more than a few
thousand rows are dictionaries at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from msgspec.structs import replace

from ..text.result_columns import COMPARISON, ESTIMATE, PART, Document, columns_of
from .comparison_schema import CompareResult
from .estimate_schema import EstimateResult, SeriesEstimate, TimeRangeEstimate
from .json_encoding import plain

ROWS = 5_000  # in one part
RANGE = frozenset({"from", "below"})

Row = TypeVar("Row")


def split(answer: object) -> Iterator[Document]:
    """Yield an answer's parts as JSON has them; their rows, in order, are the answer's.

    An answer that is a document already (it came over HTTP) is one part.
    """
    match answer:
        case EstimateResult():
            for series in answer.series:
                for part in _parts_of_series(series):
                    yield plain(replace(answer, series=[part]))
        case CompareResult():
            for rows in _chunks(answer.rows):
                yield plain(replace(answer, rows=rows))
        case _:
            yield plain(answer)


def _parts_of_series(series: SeriesEstimate) -> Iterator[SeriesEstimate]:
    time_ranges, rows = list[TimeRangeEstimate](), 0
    for part in (part for each in series.time_ranges for part in _parts_of_time_range(each)):
        time_ranges.append(part)
        rows += _rows(part)
        if rows >= ROWS:
            yield replace(series, time_ranges=time_ranges)
            time_ranges, rows = [], 0
    if time_ranges:
        yield replace(series, time_ranges=time_ranges)


def _rows(time_range: TimeRangeEstimate) -> int:
    spread = time_range.spread
    curve = len(spread.buckets) + len(spread.curve) + len(spread.quantiles) if spread else 0
    return len(time_range.values) + curve + 1


def _parts_of_time_range(time_range: TimeRangeEstimate) -> Iterator[TimeRangeEstimate]:
    """Yield its values in chunks; what stands behind the values comes with the last chunk."""
    *first, last = list(_chunks(time_range.values)) or [[]]
    for values in first:
        yield replace(time_range, values=values, absent=None, mean=None, spread=None)
    yield replace(time_range, values=last)


def _chunks(rows: list[Row]) -> Iterator[list[Row]]:
    for begin in range(0, len(rows), ROWS):
        yield rows[begin : begin + ROWS]


def column_names(answer: object) -> tuple[str, ...]:
    """Return the names of an answer's columns; crossed values have one for each of their parts."""
    match answer:
        case EstimateResult():
            values = (row.value for each in _time_ranges(answer) for row in each.values)
            return _named(ESTIMATE, values)
        case CompareResult():
            return _named(COMPARISON, (row.value for row in answer.rows))
    return columns_of(plain(answer)).names


def _time_ranges(answer: EstimateResult) -> Iterator[TimeRangeEstimate]:
    for series in answer.series:
        yield from series.time_ranges


def _named(names: tuple[str, ...], values: Iterator[Any]) -> tuple[str, ...]:
    crossed = (value for value in values if isinstance(value, dict) and value.keys() != RANGE)
    parts = dict.fromkeys(PART + name for value in crossed for name in value)
    after = names.index("value") + 1
    return (*names[:after], *parts, *names[after:])


def promises_of(answer: object) -> dict[str, list[str]]:
    """Return what each series of an answer promises, by fingerprint."""
    if isinstance(answer, EstimateResult):
        return {each.fingerprint: each.promise for each in answer.series}
    series = plain(answer).get("series", ()) if not isinstance(answer, CompareResult) else ()
    return {each["fingerprint"]: each["promise"] for each in series}
