"""Results as tables: CSV, Arrow, Parquet, with the columns of `text.result_columns`.

A table is written by columns: as rows, 100,000 figures would be ten times as large as their types.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, repeat
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from veilcount_analysis.kinds.results import Figure
from veilcount_analysis.text.arrow_tables import EITHER, arrow_table, write_parquet, write_stream
from veilcount_analysis.text.result_columns import (
    COMPARISON,
    ESTIMATE,
    FIGURE,
    Row,
    comparison_table,
    kind_of,
    named,
    range_cells,
    segment_cells,
    spelled,
    typed_cells,
    with_parts,
)
from veilcount_shared.installing import install

from ..json_results import encode, plain
from .comparison import CompareResult
from .estimate_schema import EstimateResult

ROWS = 1_000  # in one part: more leave the processor's cache

Answer = EstimateResult | CompareResult
Columns = dict[str, list[Any]]


def _parts(answer: Answer) -> Iterator[tuple[Row, Columns]]:
    """Yield the cells that rows of an answer share, and columns of their own, by the thousand."""
    if isinstance(answer, CompareResult):
        for rows in _chunks(answer.rows):
            table = list(comparison_table(plain(replace(answer, rows=rows))))
            yield {}, {name: [row.get(name) for row in table] for name in column_names(answer)}
        return
    for series in answer.series:
        for time_range in series.ranges:
            part = replace(series, ranges=[replace(time_range, figures=())])
            ((of_range, raked, _),) = range_cells(plain(replace(answer, series=[part])))
            for is_raked, figures in groupby(time_range.figures, lambda row: row.kind == "raked"):
                for rows in _chunks(list(figures)):
                    yield of_range | (raked if is_raked else {}), _figure_columns(rows)


def _figure_columns(figures: Sequence[Figure]) -> Columns:
    columns = {name: list(map(attrgetter(name), figures)) for name in FIGURE}
    if dict not in set(map(type, columns["of"])):
        return columns | {"of": [spelled(value) or None for value in columns["of"]]}
    values = [named("of", value) for value in columns["of"]]
    for name in dict.fromkeys(name for value in values for name in value):
        columns[name] = [value.get(name) for value in values]
    return columns


def _chunks(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for begin in range(0, len(rows), ROWS):
        yield rows[begin : begin + ROWS]


def column_names(answer: Answer) -> tuple[str, ...]:
    """Return the names of an answer's columns; crossed values have one for each of their parts."""
    if isinstance(answer, CompareResult):
        values = (named("value", row.value) for row in answer.rows)
        return with_parts(COMPARISON, "value", values)
    ranges = (time_range for series in answer.series for time_range in series.ranges)
    figures = (figure for time_range in ranges for figure in time_range.figures)
    crossed = (named("of", figure.of) for figure in figures if isinstance(figure.of, dict))
    names = with_parts(ESTIMATE, "segments", [segment_cells(answer.segments)])
    return with_parts(names, "of", crossed)


def promises_of(answer: Answer) -> dict[str, list[str]]:
    """Return what each series of an estimate promises, by fingerprint."""
    if isinstance(answer, EstimateResult):
        return {series.fingerprint: series.promise for series in answer.series}
    return {}


CSV_TYPE = "text/csv"
ARROW_TYPE = "application/vnd.apache.arrow.stream"
PARQUET_TYPE = "application/vnd.apache.parquet"
_FORMULA = ("=", "+", "-", "@")
_QUOTE = '"'
_IS_PLAIN = re.compile(r'[^-=+@,"\r\n][^,"\r\n]*').fullmatch
_IS_QUOTED = re.compile(r'[,"\r\n]').search
_IS_NUMBER = re.compile(r"[-+.0-9e]+").fullmatch  # or a range of them: what no spreadsheet runs


class ArrowUnavailable(RuntimeError):
    """Arrow and Parquet need pyarrow or arro3, of which none is installed."""


def stream_csv(answer: Answer) -> Iterator[bytes]:
    """Yield an answer as CSV: a line of names, then a line a figure; nothing for no figure."""
    names = column_names(answer)
    yield f"{','.join(map(_csv_cell, names))}\r\n".encode()
    for shared, columns in _parts(answer):
        cells = _csv_cells(names, shared, columns)
        lines = map(",".join, zip(*cells, strict=False))  # some columns are endless
        yield "\r\n".join([*lines, ""]).encode()


def _csv_cells(names: Sequence[str], shared: Row, columns: Columns) -> Iterator[Iterable[str]]:
    """Yield columns as CSV has them; neighbours that all rows share are one text."""
    for is_shared, group in groupby(names, shared.__contains__):
        if is_shared:
            yield repeat(",".join(_csv_cell(shared[name]) for name in group))
        else:
            yield from (_csv_column(name, columns) for name in group)


def _csv_column(name: str, columns: Columns) -> Iterable[str]:
    """Return the cells of a column; numbers are written as JSON has them."""
    if name not in columns:
        return repeat("")
    column = columns[name]
    if kind_of(name) in {int, float}:
        return encode(column)[1:-1].decode().replace("null", "").split(",")
    if len(distinct := set(column)) == 1:  # the kind of figures, in most results
        return repeat(_csv_cell(*distinct), len(column))
    return map(_csv_cell, column)


def _csv_cell(value: Any) -> str:
    """Return a cell: yes and no as JSON has them, and no text that a spreadsheet would run.

    An apostrophe stands before a name that begins as a formula does: spreadsheets show it as text.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(encode(value), "utf-8")
    if _IS_PLAIN(value):
        return value
    if value.startswith(_FORMULA) and not _IS_NUMBER(value):
        value = f"'{value}"
    return f'"{value.replace(_QUOTE, 2 * _QUOTE)}"' if _IS_QUOTED(value) else value


def stream_arrow(answer: Answer) -> Iterator[bytes]:
    """Yield an answer as a stream of Arrow."""
    return _written(write_stream, answer)


def stream_parquet(answer: Answer) -> Iterator[bytes]:
    """Yield an answer as a Parquet file."""
    return _written(write_parquet, answer)


def _written(write: Callable[[Any, io.BytesIO], None], answer: Answer) -> Iterator[bytes]:
    """Yield a file of an answer; the promises are in its metadata."""
    columns: Columns = {name: [] for name in column_names(answer)}
    for shared, own in _parts(answer):
        rows = len(next(iter(own.values())))
        for name in columns:
            columns[name] += _typed(name, shared, own, rows)
    metadata = {"veilcount.promises": json.dumps(promises_of(answer))}
    try:
        table = arrow_table(columns, {name: kind_of(name) for name in columns}, metadata)
    except ModuleNotFoundError as missing:
        raise ArrowUnavailable(f"Arrow and Parquet need {EITHER}: {install('arrow')}") from missing
    sink = io.BytesIO()
    write(table, sink)
    yield sink.getvalue()


def _typed(name: str, shared: Row, own: Columns, rows: int) -> list[Any]:
    """Return some rows of a column; a number that JSON has not is null, as there."""
    if name in shared:
        return typed_cells(name, [shared]) * rows
    if name not in own:
        return [None] * rows
    return plain(own[name]) if kind_of(name) is float else own[name]


Stream = Callable[[Any], Iterator[bytes]]

#: by media type; each yields a part of the answer at a time
WRITERS: Mapping[str, Stream] = {
    CSV_TYPE: stream_csv,
    ARROW_TYPE: stream_arrow,
    PARQUET_TYPE: stream_parquet,
}
