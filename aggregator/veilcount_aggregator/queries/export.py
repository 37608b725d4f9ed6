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
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from veilcount_analysis.text.result_columns import (
    COMPARISON,
    ESTIMATE,
    PART,
    Document,
    columns_of,
    kind_of,
)

from .comparison import CompareResult
from .estimate_schema import EstimateResult, SeriesEstimate, TimeRangeEstimate
from .json_encoding import plain

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 5_000  # in one part
RANGE = frozenset({"from", "below"})

Answer = EstimateResult | CompareResult
Row = TypeVar("Row")


def split(answer: Answer) -> Iterator[Document]:
    """Yield an answer's parts as JSON has them; their rows, in order, are the answer's."""
    if isinstance(answer, EstimateResult):
        for series in answer.series:
            for part in _parts_of_series(series):
                yield plain(replace(answer, series=[part]))
    else:
        for rows in _chunks(answer.rows):
            yield plain(replace(answer, rows=rows))


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


def column_names(answer: Answer) -> tuple[str, ...]:
    """Return the names of an answer's columns; crossed values have one for each of their parts."""
    if isinstance(answer, EstimateResult):
        values = (row.value for each in _time_ranges(answer) for row in each.values)
        return _named(ESTIMATE, values)
    return _named(COMPARISON, (row.value for row in answer.rows))


def _time_ranges(answer: EstimateResult) -> Iterator[TimeRangeEstimate]:
    for series in answer.series:
        yield from series.time_ranges


def _named(names: tuple[str, ...], values: Iterator[Any]) -> tuple[str, ...]:
    crossed = (value for value in values if isinstance(value, dict) and value.keys() != RANGE)
    parts = dict.fromkeys(PART + name for value in crossed for name in value)
    after = names.index("value") + 1
    return (*names[:after], *parts, *names[after:])


def promises_of(answer: Answer) -> dict[str, list[str]]:
    """Return what each series of an estimate promises, by fingerprint."""
    if isinstance(answer, EstimateResult):
        return {each.fingerprint: each.promise for each in answer.series}
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
    for part in split(answer):
        rows = columns_of(part).rows
        yield _lines([_cell(row.get(name)) for name in names] for row in rows)


def _lines(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode()


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
        for part in split(answer):
            writer.write_table(_table(part, names, schema))
            with sink.getbuffer() as written:
                piece, sent = bytes(written[sent:]), len(written)
            yield piece
    yield sink.getvalue()[sent:]


def _table(part: Document, names: Sequence[str], schema: pa.Schema) -> pa.Table:
    columns = columns_of(part)
    return _arrow().table([columns[name] for name in names], schema=schema)


def _schema(answer: Answer) -> pa.Schema:
    """Return the types of an answer's columns; the promises go into its metadata."""
    pa = _arrow()
    types = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64()}
    fields = [pa.field(name, types[kind_of(name)]) for name in column_names(answer)]
    promises = json.dumps(promises_of(answer))
    return pa.schema(fields, metadata={"veilcount.promises": promises})


def _arrow() -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - large, and most answers are JSON
    except ModuleNotFoundError as missing:
        fix = "pip install 'veilcount[arrow]'"
        raise ArrowUnavailable(f"Arrow and Parquet need pyarrow: {fix}") from missing
    return pa


Stream = Callable[[Any], Iterator[bytes]]

#: by media type; each yields a part of the answer at a time
WRITERS: Mapping[str, Stream] = {
    CSV_TYPE: stream_csv,
    ARROW_TYPE: stream_arrow,
    PARQUET_TYPE: stream_parquet,
}
