"""Answers as tables: CSV, Arrow, Parquet. The columns are those of `reader.columns`."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..reader.columns import Columns, columns_of, kind_of
from .spelling import plain

if TYPE_CHECKING:
    import pyarrow as pa

CSV_TYPE = "text/csv"
ARROW_TYPE = "application/vnd.apache.arrow.stream"
PARQUET_TYPE = "application/vnd.apache.parquet"
_FORMULA = ("=", "+", "-", "@")
_IS_NUMBER = re.compile(r"[-+.0-9e]+").fullmatch  # or a range of them: what no spreadsheet runs


class NoArrow(RuntimeError):
    """Arrow and Parquet need pyarrow, and it is not here."""


def as_csv(answer: object) -> bytes:
    """Return an answer as CSV: a line of names, then a line a figure; nothing for no figure."""
    columns = columns_of(plain(answer))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns.names)
    for row in columns.rows:
        writer.writerow([_cell(row.get(name)) for name in columns.names])
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


def as_arrow(answer: object) -> bytes:
    """Return an answer as a stream of Arrow."""
    pa = _arrow()
    sink = pa.BufferOutputStream()
    found = table(plain(answer))
    with pa.ipc.new_stream(sink, found.schema) as writer:
        writer.write_table(found)
    return bytes(sink.getvalue())


def as_parquet(answer: object) -> bytes:
    """Return an answer as a Parquet file."""
    pa = _arrow()
    import pyarrow.parquet  # noqa: PLC0415 - large, and most answers are JSON

    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table(plain(answer)), sink)
    return bytes(sink.getvalue())


def table(document: Mapping[str, Any]) -> pa.Table:
    """Return an answer's columns as an Arrow table; the promises go into its metadata."""
    pa = _arrow()
    columns: Columns = columns_of(document)
    types = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64()}
    fields = [pa.field(name, types[kind_of(name)]) for name in columns.names]
    promises = {each["fingerprint"]: each["promise"] for each in document.get("series", ())}
    schema = pa.schema(fields, metadata={"veilcount.promises": json.dumps(promises)})
    return pa.table([columns[name] for name in columns.names], schema=schema)


def _arrow() -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - large, and most answers are JSON
    except ModuleNotFoundError as missing:
        raise NoArrow("Arrow and Parquet need pyarrow here: pip install pyarrow") from missing
    return pa


WRITERS: Mapping[str, Callable[[object], bytes]] = {
    CSV_TYPE: as_csv,
    ARROW_TYPE: as_arrow,
    PARQUET_TYPE: as_parquet,
}
