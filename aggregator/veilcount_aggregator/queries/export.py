"""Results as tables: CSV, Arrow, Parquet, with the columns of `text.result_columns`.

A table is written part by part: 100,000 figures are some 30 MB as types, and ten times that as
dictionaries. So no more than a few thousand rows are dictionaries at once.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import repeat
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from veilcount_analysis.text.result_columns import (
    COMPARISON,
    ESTIMATE,
    Row,
    comparison_table,
    estimate_parts,
    kind_of,
    named,
    segment_cells,
    typed_cells,
    with_parts,
)
from veilcount_shared.installing import install

from .comparison import CompareResult
from .estimate_schema import EstimateResult
from .json_encoding import plain

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 5_000  # in one part

Answer = EstimateResult | CompareResult


def _parts(answer: Answer) -> Iterator[tuple[Row, list[Row]]]:
    """Yield the cells that rows of an answer share, and their own, some thousand rows at a time."""
    if isinstance(answer, CompareResult):
        for rows in _chunks(answer.rows):
            yield {}, list(comparison_table(plain(replace(answer, rows=rows))))
        return
    for series in answer.series:
        for time_range in series.ranges:
            for figures in _chunks(time_range.figures):
                part = replace(series, ranges=[replace(time_range, figures=figures)])
                yield from estimate_parts(plain(replace(answer, series=[part])))


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
_IS_NUMBER = re.compile(r"[-+.0-9e]+").fullmatch  # or a range of them: what no spreadsheet runs


class ArrowUnavailable(RuntimeError):
    """Arrow and Parquet need pyarrow, which is not installed."""


def stream_csv(answer: Answer) -> Iterator[bytes]:
    """Yield an answer as CSV: a line of names, then a line a figure; nothing for no figure."""
    names = column_names(answer)
    yield _lines([names])
    for shared, rows in _parts(answer):
        columns = (
            repeat(_cell(shared[name]), len(rows)) if name in shared else _cells(name, rows)
            for name in names
        )
        yield _lines(zip(*columns, strict=True))


def _lines(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode()


def _cells(name: str, rows: Sequence[Row]) -> list[object]:
    cells = [row.get(name) for row in rows]
    return cells if kind_of(name) in {int, float} else [_cell(cell) for cell in cells]


def _cell(value: Any) -> object:
    """Return a cell: yes and no as JSON has them, and no text that a spreadsheet would run.

    An apostrophe stands before a name that begins as a formula does: spreadsheets show it as text.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value.startswith(_FORMULA) and not _IS_NUMBER(value):
        return f"'{value}"
    return value


def stream_arrow(answer: Answer) -> Iterator[bytes]:
    """Yield an answer as a stream of Arrow, one record batch a part."""
    return _stream(_arrow().ipc.new_stream, answer)


def stream_parquet(answer: Answer) -> Iterator[bytes]:
    """Yield an answer as a Parquet file, one row group a part."""
    _arrow()
    import pyarrow.parquet  # noqa: PLC0415 - large, and most answers are JSON

    return _stream(pyarrow.parquet.ParquetWriter, answer)


def _stream(open_writer: Callable[[io.BytesIO, pa.Schema], Any], answer: Answer) -> Iterator[bytes]:
    sink, names, schema = io.BytesIO(), column_names(answer), _schema(answer)
    sent = 0
    with open_writer(sink, schema) as writer:
        for shared, rows in _parts(answer):
            columns = [
                typed_cells(name, [shared]) * len(rows)
                if name in shared
                else typed_cells(name, rows)
                for name in names
            ]
            writer.write_table(_arrow().table(columns, schema=schema))
            with sink.getbuffer() as written:
                piece, sent = bytes(written[sent:]), len(written)
            yield piece
    yield sink.getvalue()[sent:]


def _schema(answer: Answer) -> pa.Schema:
    """Return the types of an answer's columns; the promises go into its metadata."""
    pa = _arrow()
    types = {
        str: pa.string(),
        int: pa.int64(),
        bool: pa.bool_(),
        float: pa.float64(),
        date: pa.date32(),
    }
    fields = [pa.field(name, types[kind_of(name)]) for name in column_names(answer)]
    promises = json.dumps(promises_of(answer))
    return pa.schema(fields, metadata={"veilcount.promises": promises})


def _arrow() -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - large, and most answers are JSON
    except ModuleNotFoundError as missing:
        fix = install("arrow")
        raise ArrowUnavailable(f"Arrow and Parquet need pyarrow: {fix}") from missing
    return pa


Stream = Callable[[Any], Iterator[bytes]]

#: by media type; each yields a part of the answer at a time
WRITERS: Mapping[str, Stream] = {
    CSV_TYPE: stream_csv,
    ARROW_TYPE: stream_arrow,
    PARQUET_TYPE: stream_parquet,
}
