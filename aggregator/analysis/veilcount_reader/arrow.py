"""Figures as Arrow tables and Parquet files, of pyarrow or else of arro3, a fifth of its size.

Both have Arrow's interface for Python (PyCapsule), so pandas, polars and DuckDB take either table.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

from .frames import load

EPOCH = date(1970, 1, 1)
EITHER = "pyarrow, or arro3-core and arro3-io"


def to_arrow(cells_by_name: Mapping[str, list[Any]], types: Mapping[str, type]) -> Any:
    """Return a table of whichever is installed."""
    is_small = _has_arro3_alone()
    return (_arro3_table if is_small else _pyarrow_table)(cells_by_name, types)


def write_parquet(table: Any, path: str | Path) -> None:
    """Write such a table to a Parquet file."""
    if _has_arro3_alone():
        load("arro3.io", "to_parquet").write_parquet(table, Path(path))
    else:
        import_module("pyarrow.parquet").write_table(table, path)


def _has_arro3_alone() -> bool:
    return not _is_installed("pyarrow") and _is_installed("arro3.core")


def _is_installed(name: str) -> bool:
    try:
        import_module(name)
    except ModuleNotFoundError:
        return False
    return True


def _pyarrow_table(cells_by_name: Mapping[str, list[Any]], types: Mapping[str, type]) -> Any:
    arrow = load("pyarrow", "to_arrow", EITHER)
    named = {
        str: arrow.string(),
        int: arrow.int64(),
        bool: arrow.bool_(),
        float: arrow.float64(),
        date: arrow.date32(),
    }
    schema = arrow.schema([(name, named[kind]) for name, kind in types.items()])
    return arrow.table(list(cells_by_name.values()), schema=schema)


def _arro3_table(cells_by_name: Mapping[str, list[Any]], types: Mapping[str, type]) -> Any:
    core = load("arro3.core", "to_arrow")
    arrays = [_arro3_array(core, cells, types[name]) for name, cells in cells_by_name.items()]
    return core.Table.from_arrays(arrays, names=list(cells_by_name))


def _arro3_array(core: Any, cells: list[Any], kind: type) -> Any:
    """Return a column; arro3 takes no dates, but the days since Arrow's epoch."""
    data_type = core.DataType
    if kind is date:
        days = [None if day is None else (day - EPOCH).days for day in cells]
        return core.Array(days, data_type.int32()).cast(data_type.date32())
    named = {str: data_type.utf8, int: data_type.int64, bool: data_type.bool}
    return core.Array(cells, named.get(kind, data_type.float64)())
