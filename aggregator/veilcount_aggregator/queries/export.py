"""Results as tables: CSV, Arrow, Parquet, with the columns of `text.result_columns`.

Each is written in parts, so that 100,000 rows are never in memory as cells at once.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..text.result_columns import Document, columns_of, kind_of
from .result_parts import column_names, promises_of, split

if TYPE_CHECKING:
    import pyarrow as pa

CSV_TYPE = "text/csv"
ARROW_TYPE = "application/vnd.apache.arrow.stream"
PARQUET_TYPE = "application/vnd.apache.parquet"
_FORMULA = ("=", "+", "-", "@")
_IS_NUMBER = re.compile(r"[-+.0-9e]+").fullmatch  # or a range of them: what no spreadsheet runs


class ArrowUnavailable(RuntimeError):
    """Arrow and Parquet need pyarrow, which is not installed."""


def stream_csv(answer: object) -> Iterator[bytes]:
    """Yield an answer as CSV: a line of names, then a line a figure; nothing for no figure."""
    names = column_names(answer)
    yield _lines([names])
    for part in split(answer):
        rows = columns_of(part).rows
        yield _lines([_cell(row.get(name)) for name in names] for row in rows)


def as_csv(answer: object) -> bytes:
    """Return an answer as CSV, whole."""
    return b"".join(stream_csv(answer))


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


def stream_arrow(answer: object) -> Iterator[bytes]:
    """Yield an answer as a stream of Arrow, one record batch a part."""
    return _stream(_arrow().ipc.new_stream, answer)


def stream_parquet(answer: object) -> Iterator[bytes]:
    """Yield an answer as a Parquet file, one row group a part."""
    _arrow()
    import pyarrow.parquet  # noqa: PLC0415 - large, and most answers are JSON

    return _stream(pyarrow.parquet.ParquetWriter, answer)


def _stream(open_writer: Callable[[io.BytesIO, pa.Schema], Any], answer: object) -> Iterator[bytes]:
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
    """Return a part's columns as an Arrow table."""
    columns = columns_of(part)
    return _arrow().table([columns[name] for name in names], schema=schema)


def _schema(answer: object) -> pa.Schema:
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
        raise ArrowUnavailable("Arrow and Parquet need pyarrow: pip install pyarrow") from missing
    return pa


Stream = Callable[[object], Iterator[bytes]]

#: by media type; each yields a part of the answer at a time
WRITERS: Mapping[str, Stream] = {
    CSV_TYPE: stream_csv,
    ARROW_TYPE: stream_arrow,
    PARQUET_TYPE: stream_parquet,
}
