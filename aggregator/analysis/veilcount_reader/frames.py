"""Figures as tables of pandas and polars: all columns, or one kind of figure.

The columns are those of `text.result_columns`. A frame of one kind has `collection`, `series`,
`from`, `to`, `n` and `usable`, and the figure's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from importlib import import_module
from typing import TYPE_CHECKING, Any

from veilcount_analysis.text.arrow_tables import EITHER, arrow_table
from veilcount_analysis.text.result_columns import DAYS, FIGURE, Columns, kind_of, typed_cells

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

COMMON = ("collection", "series", *DAYS, "n", "usable")


def of_kind(columns: Columns, kind: str) -> Columns:
    """Return the figures of one kind, without what holds for all of them."""
    rows = tuple(row for row in columns.rows if row.get("kind") == kind)
    if not rows:
        kinds = dict.fromkeys(row["kind"] for row in columns.rows if "kind" in row)
        raise ValueError(f"kind = {kind!r}: the result has {', '.join(kinds) or 'no kinds'}")
    figure = [name for name in columns.names if name in FIGURE or "." in name]
    return Columns((*COMMON, *figure), rows)


def cells(columns: Columns) -> tuple[dict[str, list[Any]], dict[str, type]]:
    """Return the columns by name, and their types."""
    names = columns.names
    cells_by_name = {name: typed_cells(name, columns.rows) for name in names}
    return cells_by_name, {name: kind_of(name) for name in names}


def load(name: str, user: str) -> Any:
    """Import an optional module, or name what needs it and how to install it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        package = name.partition(".")[0]
        fix = f"pip install {package}"  # of an index: none of these packages is ours
        raise ModuleNotFoundError(f"{user} needs {package}: {fix}") from missing


def to_arrow(cells_by_name: Mapping[str, list[Any]], types: Mapping[str, type]) -> Any:
    """Return an Arrow table, of pyarrow or arro3."""
    try:
        return arrow_table(cells_by_name, types)
    except ModuleNotFoundError as missing:
        fix = "pip install arro3-core arro3-io"
        raise ModuleNotFoundError(f"to_arrow needs {EITHER}: {fix}") from missing


def to_pandas(cells_by_name: Mapping[str, list[Any]], types: Mapping[str, type]) -> pd.DataFrame:
    """Return a DataFrame; days are dates."""
    pandas = load("pandas", "to_pandas")
    frame: pd.DataFrame = pandas.DataFrame(cells_by_name, columns=list(cells_by_name))
    for name, kind in types.items():
        if kind is float:
            frame[name] = frame[name].astype(float)
    for day in set(DAYS) & set(cells_by_name):
        frame[day] = pandas.to_datetime(frame[day])
    return frame


def to_polars(cells_by_name: Mapping[str, list[Any]], types: Mapping[str, type]) -> pl.DataFrame:
    """Return a DataFrame of polars; days are dates."""
    polars = load("polars", "to_polars")
    named = {
        str: polars.String,
        int: polars.Int64,
        bool: polars.Boolean,
        float: polars.Float64,
        date: polars.Date,
    }
    schema = {name: named[kind] for name, kind in types.items()}
    frame: pl.DataFrame = polars.DataFrame(dict(cells_by_name), schema=schema)
    return frame
