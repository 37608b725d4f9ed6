"""Results for notebooks: the document, its figures as arrays and as tables."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veilcount_analysis.text import number_format
from veilcount_analysis.text.arrow_tables import write_parquet
from veilcount_analysis.text.number_format import figure, interval
from veilcount_analysis.text.result_columns import Columns, columns_of, spelled

from . import frames, plot
from .result_table import MOST_ROWS, ResultTable

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Answer:
    """A response of the aggregator; `document` is its JSON."""

    document: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.document[name]

    def __repr__(self) -> str:
        """Return the first lines of the document."""
        lines = json.dumps(self.document, indent=1, ensure_ascii=False).splitlines()
        hidden = len(lines) - MOST_ROWS
        return "\n".join([*lines[:MOST_ROWS], *([f"and {hidden:,} more lines"] * (hidden > 0))])


class _Shown(ABC):
    """A result that a notebook shows as HTML, and a terminal as text."""

    @abstractmethod
    def shown(self) -> ResultTable:
        """Return the sentences and the table that are shown."""

    def __repr__(self) -> str:
        return self.shown().text()

    def _repr_html_(self) -> str:
        return self.shown().html()


@dataclass(frozen=True, repr=False)
class TableAnswer(_Shown, Answer):
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
        """The level of the interval of each figure on its own."""
        return float(self.document["level"])

    def to_pandas(self, kind: str | None = None) -> pd.DataFrame:
        """Return a DataFrame, a row a figure; days are dates. `kind`: only those of an estimate."""
        return frames.to_pandas(*self._frame(kind))

    def to_polars(self, kind: str | None = None) -> pl.DataFrame:
        """Return the same as a DataFrame of polars."""
        return frames.to_polars(*self._frame(kind))

    def to_arrow(self, kind: str | None = None) -> Any:
        """Return the rows as an Arrow table, of pyarrow or arro3."""
        return frames.to_arrow(*self._frame(kind))

    def to_parquet(self, path: str | Path) -> None:
        """Write all figures to a Parquet file."""
        write_parquet(self.to_arrow(), path)

    def _frame(self, kind: str | None) -> tuple[dict[str, list[Any]], dict[str, type]]:
        columns = self.columns if kind is None else frames.of_kind(self.columns, kind)
        return frames.cells(columns)

    def _floats(self, name: str) -> Floats:
        """Return a column of figures; NaN where there is none."""
        return np.array(
            [np.nan if column is None else column for column in self.columns[name]], float
        )


@dataclass(frozen=True, repr=False)
class Estimate(TableAnswer):
    """An estimate: `of`, `figure`, `low`, `high` are arrays, the largest share first.

    They are of the last time range of the newest series: its shares, or its mean, or correlations.
    The frames have all figures; of one `kind` (share, mean, curve, quantile, ...) its rows.
    """

    @cached_property
    def columns(self) -> Columns:
        """The figures, in columns; of each time range the largest share first."""
        return columns_of(_sorted(self.document))

    def plot(self) -> Any:
        """Draw the newest series: a dot and its interval for each figure; return the Axes.

        Over several time ranges, small multiples, and the array of their Axes.
        """
        return plot.draw(self._newest, self.level)

    def shown(self) -> ResultTable:
        """Return a table of the last time range, under what n reports allow to say."""
        about = f"{self.collection}, {self._last['from']} to {self._last['to']}: n = {self.n:,}"
        note = f"{self.level:.4g} intervals, one for each value, {self.estimand}."
        if not self.usable:
            note = "Figures would be noise; to_pandas() has them."
        raked = [row for row in self._last["figures"] if row["kind"] == "raked"]
        rows = [_shown_row(row) for row in [*plot.shown(self._last), *raked] if self.usable]
        notes = (self.weighting or {}).get("notes", ())
        head = ("figure", "estimate", "interval")
        return ResultTable((self.adequacy, *notes), f"{about}. {note}", head, rows)

    @property
    def n(self) -> int:
        """How many reports."""
        return int(self._last["n"])

    @property
    def usable(self) -> bool:
        """Whether n reports are enough for the figures to be read; `adequacy` says it in words."""
        return bool(self._last["usable"])

    @property
    def adequacy(self) -> str:
        """How far n reports reach, and from how many on figures are above noise."""
        return str(self._last["adequacy"])

    @property
    def estimand(self) -> str:
        """What the intervals estimate."""
        return str(self._last["estimand"])

    @property
    def weighting(self) -> dict[str, Any] | None:
        """How shares were reweighted to a population's margins: design effect, source, notes."""
        weighting: dict[str, Any] | None = self._last.get("weighting")
        return weighting

    @property
    def epsilon(self) -> dict[str, str]:
        """Epsilon for an event, a day and a user, exact decimals; and their adjacency."""
        return dict(self._newest["epsilon"])

    @property
    def unit(self) -> str:
        """What epsilon protects."""
        return str(self._newest["unit"])

    @property
    def of(self) -> list[Any]:
        """What the figures are of, as JSON has it: values; None for the mean of a number."""
        return [row["of"] for row in plot.shown(self._last)]

    @property
    def figure(self) -> Floats:
        """The figures; NaN where nothing was received."""
        return self._column("figure")

    @property
    def low(self) -> Floats:
        """The lower ends of the intervals."""
        return self._column("low")

    @property
    def high(self) -> Floats:
        """The upper ends."""
        return self._column("high")

    @property
    def _newest(self) -> Mapping[str, Any]:
        return dict(_sorted(self.document)["series"][0])

    @property
    def _last(self) -> Mapping[str, Any]:
        return dict(self._newest["ranges"][-1])

    def _column(self, name: str) -> Floats:
        return np.array([row[name] for row in plot.shown(self._last)], np.float64)


def _shown_row(row: Mapping[str, Any]) -> tuple[str, str, str]:
    of_shares, name = row["kind"] in {"share", "raked"}, plot.label(row)
    if row["kind"] == "raked":
        name = f"{name}, reweighted"
    if row["figure"] is None:
        return name, "not stated", ""
    ends = interval(row["low"], row["high"], of_shares=of_shares)
    return name, figure(row["figure"], of_shares=of_shares), ends


def _sorted(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return an estimate with the largest share of each time range first."""
    sorted_series = [
        {**series, "ranges": [{**part, "figures": _by_share(part)} for part in series["ranges"]]}
        for series in document["series"]
    ]
    return {**document, "series": sorted_series}


def _by_share(time_range: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return figures with the largest share first, and all others behind the shares."""

    def order(row: Mapping[str, Any]) -> tuple[bool, float]:
        is_share, share = row["kind"] == "share", row["figure"]
        return not is_share, -share if is_share and share is not None else 0.0

    return sorted(time_range["figures"], key=order)


@dataclass(frozen=True, repr=False)
class CentralRelease(_Shown, Answer):
    """A central release: what was asked, its figures with their intervals, and what it cost."""

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame, a row a figure."""
        figures = self["figures"]
        columns = {
            "value": [spelled(row["value"]) for row in figures],
            **{name: [row[name] for row in figures] for name in ("figure", "low", "high")},
        }
        return frames.to_pandas(columns, {"figure": float, "low": float, "high": float})

    def shown(self) -> ResultTable:
        """Return its figures, under what they cost."""
        about = f"{json.dumps(self['query'])}, {self['from']} to {self['to']}"
        rows = [
            (
                spelled(row["value"]),
                figure(row["figure"], of_shares=False),
                interval(row["low"], row["high"], of_shares=False),
            )
            for row in self["figures"]
        ]
        unit = "rho" if self["epsilon"] is None else "epsilon"
        cost = f"{unit} {self[unit]} of one unit"
        caption = f"{about}. {self['level']:.4g} intervals; {cost}."
        return ResultTable((), caption, ("value", "figure", "interval"), rows)


@dataclass(frozen=True, repr=False)
class ReleaseList(Answer):
    """All releases of a central collection, and what is left of its budget."""

    def __iter__(self) -> Iterator[CentralRelease]:
        for series in self["series"]:
            yield from map(CentralRelease, series["releases"])

    def __len__(self) -> int:
        return sum(len(series["releases"]) for series in self["series"])

    def remaining(self) -> pd.DataFrame:
        """Return what is spent and what remains of each period's budget, the newest series."""
        periods = self["series"][0]["periods"]
        names = ("period", "from", "to", "spent", "remaining")
        columns = {name: [period[name] for period in periods] for name in names}
        return frames.to_pandas(columns, {})

    def __repr__(self) -> str:
        """Return a line a release: what was asked, of which time, and what it cost."""
        captions = [one_release.shown().caption for one_release in self]
        hidden = len(captions) - MOST_ROWS
        more = [f"and {hidden:,} more"] if hidden > 0 else []
        return "\n".join([f"{len(captions)} releases", *captions[:MOST_ROWS], *more])

    def _repr_html_(self) -> str:
        return "".join(one_series._repr_html_() for one_series in self)


@dataclass(frozen=True, repr=False)
class ComparisonResult(TableAnswer):
    """A comparison: first less second, value by value."""

    def shown(self) -> ResultTable:
        """Return the differences as a table, under the sentence that states them."""
        rows = [
            (
                spelled(row["value"]),
                number_format.difference(row["difference"], of_shares=True),
                f"{row['low'] * 100:+.2f} to {row['high'] * 100:+.2f}",
            )
            for row in self.document["rows"]
            if row["difference"] is not None
        ]
        sentences = (self.sentence, *filter(None, [self.overall]))
        head = ("value", "difference", "interval")
        return ResultTable(sentences, self.collection, head, rows)

    @property
    def overall(self) -> str:
        """Whether anything differs, by one test of all values at once; empty: it has none."""
        test = self.document["overall"]
        return str(test["sentence"]) if test else ""

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
