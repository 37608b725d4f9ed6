"""Results as tables: CSV, Arrow, Parquet, with the columns of `text.result_columns`.

Each is written a part at a time, so that 100,000 rows are never in memory as cells at once.
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
    """Arrow and Parquet need pyarrow, and it is not here."""


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
    pa = _arrow()
    sink, names, schema = _Sink(), column_names(answer), _schema(answer)
    with pa.ipc.new_stream(sink, schema) as writer:
        for part in split(answer):
            writer.write_table(_table(part, names, schema))
            yield sink.take()
    yield sink.take()


def stream_parquet(answer: object) -> Iterator[bytes]:
    """Yield an answer as a Parquet file, one row group a part."""
    _arrow()
    import pyarrow.parquet  # noqa: PLC0415 - large, and most answers are JSON

    sink, names, schema = _Sink(), column_names(answer), _schema(answer)
    with pyarrow.parquet.ParquetWriter(sink, schema) as writer:
        for part in split(answer):
            writer.write_table(_table(part, names, schema))
            yield sink.take()
    yield sink.take()


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


class _Sink(io.RawIOBase):
    """A file that hands over what was written, and forgets it."""

    def __init__(self) -> None:
        """Begin empty."""
        self._pieces: list[bytes] = []
        self._written = 0

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, piece: Any) -> int:
        """Keep a piece until it is taken."""
        self._pieces.append(bytes(piece))
        self._written += len(self._pieces[-1])
        return len(self._pieces[-1])

    def tell(self) -> int:
        """Return how much was ever written."""
        return self._written

    def take(self) -> bytes:
        """Return what was written since."""
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


def _arrow() -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - large, and most answers are JSON
    except ModuleNotFoundError as missing:
        raise ArrowUnavailable(
            "Arrow and Parquet need pyarrow here: pip install pyarrow"
        ) from missing
    return pa


Stream = Callable[[object], Iterator[bytes]]

#: by media type; each yields a part of the answer at a time
WRITERS: Mapping[str, Stream] = {
    CSV_TYPE: stream_csv,
    ARROW_TYPE: stream_arrow,
    PARQUET_TYPE: stream_parquet,
}
