"""Exports: CPU time a row of an estimate as CSV, Arrow and Parquet, by each library of Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from unittest.mock import patch

import numpy as np

from veilcount_aggregator.queries import EstimateQuery, EstimateResult
from veilcount_aggregator.queries.estimate import estimate_counts
from veilcount_aggregator.queries.export import stream_arrow, stream_csv, stream_parquet
from veilcount_analysis.counts import CountersSource
from veilcount_analysis.kinds.estimate_query import MOST_ROWS
from veilcount_analysis.series.series import Series
from veilcount_analysis.text import arrow_tables
from veilcount_shared.domain import Choice

from .definitions import ask
from .stopwatch import Stopwatch
from .table import Row, Table, figure

MOST = 4.0  # us a row, of each
SECONDS = 2.0
NOTES = ("A row is a figure with 36 columns; the estimate is computed before, imports are done.",)


def run(*, quick: bool) -> Table:
    """Write an estimate of many values, or of as many as a result may have."""
    rows = MOST_ROWS // 10 if quick else MOST_ROWS
    answer = _answer(rows)
    measured = [_row("CSV", stream_csv, answer, rows)]
    for library in ("pyarrow", "arro3"):
        with patch.object(arrow_tables, "_has_arro3_alone", lambda: library == "arro3"):  # noqa: B023
            measured += [
                _row(f"Arrow by {library}", stream_arrow, answer, rows),
                _row(f"Parquet by {library}", stream_parquet, answer, rows),
            ]
    return Table("exports: us a row", measured, NOTES, digits=2)


def _row(
    what: str, write: Callable[[EstimateResult], Iterator[bytes]], answer: EstimateResult, rows: int
) -> Row:
    watch = Stopwatch(lambda result: b"".join(write(result)), [answer])
    return figure(what, watch.microseconds(SECONDS) / rows, f"{rows:,} rows", MOST)


def _answer(rows: int) -> EstimateResult:
    series = Series(ask(Choice(tuple(f"value {place}" for place in range(rows))), 4))
    reports = np.random.default_rng(1).poisson(100, series.counters)
    source = CountersSource(series, {(0, 0): reports}, series.collection.until)
    return estimate_counts(source, EstimateQuery(size=MOST_ROWS))
