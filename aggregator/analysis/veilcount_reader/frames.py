"""Figures as tables of pandas, polars and Arrow: all columns, or one kind of figure.

The columns are those of `text.result_columns`. A frame of one kind has `collection`, `series`,
`from`, `to`, `n` and `usable`, and the figure's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from veilcount_analysis.text.result_columns import FIGURE, Columns, kind_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

DAYS = ("from", "to")
COMMON = ("collection", "series", *DAYS, "n", "usable")


def of_kind(columns: Columns, kind: str) -> Columns:
    """Return the figures of one kind, without what holds for all of them."""
    rows = tuple(row for row in columns.rows if row["kind"] == kind)
    if not rows:
        kinds = ", ".join(dict.fromkeys(row["kind"] for row in columns.rows)) or "no figure"
        raise ValueError(f"kind = {kind!r}: the result has {kinds}")
    figure = [name for name in columns.names if name in FIGURE or "." in name]
    return Columns((*COMMON, *figure), rows)


def cells(columns: Columns) -> tuple[dict[str, list[Any]], dict[str, type]]:
    """Return the columns by name, and their types."""
    names = columns.names
    return {name: columns[name] for name in names}, {name: kind_of(name) for name in names}


def to_pandas(found: Mapping[str, list[Any]], types: Mapping[str, type]) -> pd.DataFrame:
    """Return a DataFrame; days are dates."""
    try:
        import pandas as pd  # noqa: PLC0415 - optional
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError("to_pandas needs pandas: pip install pandas") from missing
    frame = pd.DataFrame(found, columns=list(found))
    for name, kind in types.items():
        if kind is float:
            frame[name] = frame[name].astype(float)
    for day in set(DAYS) & set(found):
        frame[day] = pd.to_datetime(frame[day])
    return frame


def to_polars(found: Mapping[str, list[Any]], types: Mapping[str, type]) -> pl.DataFrame:
    """Return a DataFrame of polars; days are dates."""
    try:
        import polars as pl  # noqa: PLC0415 - optional
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError("to_polars needs polars: pip install polars") from missing
    named = {str: pl.String, int: pl.Int64, bool: pl.Boolean, float: pl.Float64}
    frame = pl.DataFrame(dict(found), schema={name: named[kind] for name, kind in types.items()})
    days = [name for name in DAYS if name in found]
    return frame.with_columns(pl.col(name).str.to_date() for name in days)


def to_arrow(found: Mapping[str, list[Any]], types: Mapping[str, type]) -> pa.Table:
    """Return an Arrow table."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional
    except ModuleNotFoundError as missing:
        fix = "pip install 'veilcount[arrow]'"
        raise ModuleNotFoundError(f"to_arrow needs pyarrow: {fix}") from missing
    named = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64()}
    schema = pa.schema([(name, named[kind]) for name, kind in types.items()])
    return pa.table(list(found.values()), schema=schema)
