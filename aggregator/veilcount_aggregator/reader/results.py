"""Results for notebooks: the document, its figures as arrays and as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..text.result_columns import Columns, columns_of, kind_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    """A response of the aggregator; `document` is its JSON."""

    document: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.document[name]


@dataclass(frozen=True)
class Table(Answer):
    """A result whose figures are rows, with the columns of `text.result_columns`."""

    @cached_property
    def columns(self) -> Columns:
        """The figures, in columns."""
        return columns_of(self.document)

    @property
    def collection(self) -> str:
        """Which collection."""
        return str(self.document["collection"])

    @property
    def level(self) -> float:
        """The level of the intervals."""
        return float(self.document["level"])

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame, a row a figure; days are dates."""
        try:
            import pandas as pd  # noqa: PLC0415 - optional
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError("to_pandas needs pandas: pip install pandas") from missing
        frame = pd.DataFrame(self.columns.as_dict(), columns=list(self.columns.names))
        for name in self.columns.names:
            if kind_of(name) is float:
                frame[name] = frame[name].astype(float)
        for day in {"from", "to"} & set(self.columns.names):
            frame[day] = pd.to_datetime(frame[day])
        return frame

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table, a row a figure."""
        try:
            import pyarrow as pa  # noqa: PLC0415 - optional
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError("to_arrow needs pyarrow: pip install pyarrow") from missing
        types = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64()}
        schema = pa.schema([(name, types[kind_of(name)]) for name in self.columns.names])
        return pa.table([self.columns[name] for name in self.columns.names], schema=schema)

    def _floats(self, name: str) -> Floats:
        """Return a column of figures; NaN where there is none."""
        return np.array([np.nan if each is None else each for each in self.columns[name]], float)


@dataclass(frozen=True)
class Estimate(Table):
    """An estimate: `value`, `frequency`, `low`, `high` are arrays, a figure each.

    They are of the last time range of the newest series; `to_pandas` has all.
    """

    @property
    def n(self) -> int:
        """How many reports."""
        return int(self._last["n"])

    @property
    def estimand(self) -> str:
        """What the intervals estimate."""
        return str(self._last["estimand"])

    @property
    def epsilon(self) -> dict[str, str]:
        """Epsilon for an event, a day and a user, exact decimals; and their adjacency."""
        return dict(self._newest["epsilon"])

    @property
    def unit(self) -> str:
        """What epsilon protects."""
        return str(self._newest["unit"])

    @property
    def value(self) -> list[Any]:
        """The values, as JSON has them."""
        return [row["value"] for row in self._last["values"]]

    @property
    def frequency(self) -> Floats:
        """Their shares; NaN where nothing was received."""
        return self._column("frequency")

    @property
    def low(self) -> Floats:
        """The lower ends of the intervals; of a number, that of its mean."""
        return self._column("low")

    @property
    def high(self) -> Floats:
        """The upper ends."""
        return self._column("high")

    @property
    def mean(self) -> float | None:
        """The mean of a number; None for values, and where nothing was received."""
        row = self._last["mean"]
        return None if row is None else row["mean"]

    @property
    def _newest(self) -> Mapping[str, Any]:
        return dict(self.document["series"][0])

    @property
    def _last(self) -> Mapping[str, Any]:
        return dict(self._newest["time_ranges"][-1])

    def _column(self, name: str) -> Floats:
        rows = [self._last["mean"]] if self._last["mean"] else self._last["values"]
        return np.array([row.get(name, np.nan) for row in rows], np.float64)


@dataclass(frozen=True)
class ComparisonResult(Table):
    """A comparison: first less second, value by value."""

    @property
    def sentence(self) -> str:
        """All of it in words."""
        return str(self.document["sentence"])

    @property
    def difference(self) -> Floats:
        """The differences."""
        return self._floats("difference")

    @property
    def low(self) -> Floats:
        """The lower ends of their intervals."""
        return self._floats("low")

    @property
    def high(self) -> Floats:
        """The upper ends."""
        return self._floats("high")

    @property
    def holm(self) -> Floats:
        """Each p, as the family of all values has it."""
        return self._floats("holm")
