"""Figures as tables of pandas, polars and Arrow: whole, or one kind of figure with tidy columns.

Each tidy frame begins with `collection`, `series`, `from`, `to`, `n` and `usable`, and goes on with

| kind | a row is | columns |
|---|---|---|
| share | a value | value, its parts (value.PART), share, low, high, reports, fake_low, fake_high |
| mean | a mean | mean, low, high, fake_low, fake_high |
| spread | a bucket of a number's histogram | above (its lower edge), share |
| cdf | an edge | at, share (below it), low, high |
| quantile | a quantile | share, number, low, high |
| deviation, covariance | of several numbers | of, the kind, low, high, fake_low, fake_high |
| correlation | of two numbers | of, correlation, low, high, fake_low, fake_high |
| coefficient, intercept | of a regression | of, the kind, low, high, fake_low, fake_high |

`low` and `high` are the interval of each figure on its own; the interval of a quantile is in the
units of the number. All columns of all kinds are those of `text.result_columns`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from veilcount_analysis.text.result_columns import PART, Columns, kind_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

DAYS = ("from", "to")
COMMON = ("collection", "series", *DAYS, "n", "usable")
#: figures of several numbers; their means are of kind `mean`
MOMENTS = ("deviation", "covariance", "correlation", "coefficient", "intercept")
_ENDS = {"low": "low", "high": "high"}
_FAKES = {"fake_low": "fake_low", "fake_high": "fake_high"}
#: kind of a frame: kind of its rows, and what their columns are called in it
TIDY: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "share": (
        "share",
        {"value": "value", "frequency": "share"} | _ENDS | {"answers": "reports"} | _FAKES,
    ),
    "mean": ("mean", {"number": "mean"} | _ENDS | _FAKES),
    "spread": ("bucket", {"number": "above", "frequency": "share"}),
    "cdf": ("curve", {"number": "at", "frequency": "share"} | _ENDS),
    "quantile": ("quantile", {"frequency": "share", "number": "number"} | _ENDS),
    **{kind: (kind, {"value": "of", "number": kind} | _ENDS | _FAKES) for kind in MOMENTS},
}


def tidy(columns: Columns, kind: str) -> tuple[dict[str, list[Any]], dict[str, type]]:
    """Return the columns of one kind of figure, and their types."""
    if kind not in TIDY:
        raise ValueError(f"kind = {kind!r}: give one of {', '.join(TIDY)}")
    row_kind, named = TIDY[kind]
    rows = [row for row in columns.rows if row["kind"] == row_kind]
    parts = {name: name for name in columns.names if name.startswith(PART)}
    names = dict.fromkeys(COMMON) | dict.fromkeys(named)
    if kind == "share":
        names = dict.fromkeys((*COMMON, "value", *parts)) | names
    labels = {name: named.get(name, name) for name in names}
    found = {label: [row.get(name) for row in rows] for name, label in labels.items()}
    return found, {label: kind_of(name) for name, label in labels.items()}


def whole(columns: Columns) -> tuple[dict[str, list[Any]], dict[str, type]]:
    """Return all columns, and their types."""
    return columns.as_dict(), {name: kind_of(name) for name in columns.names}


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
