"""What a chart shows: figures, intervals and texts. `svg` draws it; colours are the style sheet's.

Every estimate has its interval, and every point a text, which is shown when it is pointed at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Protocol, TypeAlias, TypeVar

from veilcount_analysis.text.number_format import significant
from veilcount_analysis.text.view_parts import Row, Table

AxisValue: TypeAlias = float | str  # a figure, or one of the labels
X = TypeVar("X", bound=AxisValue)
T = TypeVar("T")
R = TypeVar("R", bound="Interval")

TWO_DECADES = 100
MARGIN = 0.05  # of a decade, so that nothing lies on the edge
HEIGHT = 300  # pixels
LOW, SMALL = 200, 144  # of a chart of a few figures, and of one of several lines


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis measures, and how its figures are written; `labels`: it has no figures.

    By default it covers its figures, with round numbers as ticks. `ticks` are figures and texts.
    """

    title: str = ""
    write: Callable[[float], str] = "{:,.6g}".format
    logarithmic: bool = False
    ends: tuple[float, float] | None = None
    ticks: tuple[tuple[float, str], ...] | None = None
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The figures that share a colour, and a text for each; with `low` and `high`, intervals.

    `x` are where a line has its figures; figures that are `open` can still change.
    """

    values: tuple[float | None, ...]
    texts: tuple[str, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    x: tuple[AxisValue, ...] = ()
    open: tuple[bool, ...] = ()
    name: str = ""
    dots: bool = False
    dashed: bool = False
    rest: bool = False  # what remains of a whole: without a colour


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars with whiskers, one for each label, the first on top."""

    labels: tuple[str, ...]
    parts: tuple[Part, ...]
    x: Axis


@dataclass(frozen=True, slots=True)
class StackedColumns:
    """Columns of counts, the parts on top of each other."""

    parts: tuple[Part, ...]
    x: Axis
    y: Axis
    height: int = HEIGHT


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines, with a band where a part has intervals; `rule` is a marked x with a text."""

    parts: tuple[Part, ...]
    x: Axis
    y: Axis
    rule: tuple[float, str] | None = None
    height: int = HEIGHT


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Shares in rows and columns, each written in its cell; the larger, the darker.

    The values of the part are those of the first row, then of the second, and so on.
    """

    rows: tuple[str, ...]
    x: Axis
    part: Part


Drawing: TypeAlias = Bars | StackedColumns | Lines | HeatMap


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its caption, and the same figures as a table; without a drawing, the table."""

    id: str
    drawing: Drawing | None
    caption: str
    columns: tuple[str, ...]
    rows: Sequence[Row]

    @classmethod
    def from_table(cls, name: str, table: Table, drawing: Drawing | None = None) -> Chart:
        """Return the chart of a table."""
        return cls(name, drawing, table.caption, table.columns, table.rows)


@dataclass(frozen=True, slots=True)
class LinePlot:
    """A line under a name and a text of its own, without a caption."""

    name: str
    text: str
    drawing: Lines


def logarithmic_axis(title: str, figures: Iterable[float | None]) -> Axis:
    """Return a logarithmic axis from tick to tick; up to two decades have ticks at 1, 2 and 5."""
    positive = [figure for figure in figures if figure] or [1.0]
    low, high = min(positive), max(positive)
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    steps = (1, 2, 5) if high <= TWO_DECADES * low else (1,)
    labelled = [step * 10.0**decade for decade in decades for step in steps]
    first = max((figure for figure in labelled if figure <= low), default=labelled[0])
    last = min((figure for figure in labelled if figure >= high), default=labelled[-1])
    shown = (figure for figure in labelled if first <= figure <= last)
    ticks = ((figure, significant(figure, 1)) for figure in shown)
    ends = first / 10**MARGIN, last * 10**MARGIN
    return Axis(title, logarithmic=True, ticks=tuple(ticks), ends=ends)


class Interval(Protocol):
    """Anything with the ends of an interval."""

    @property
    def low(self) -> float:
        """The lower end."""

    @property
    def high(self) -> float:
        """The upper end."""


def estimates(
    rows: Sequence[R],
    value: Callable[[R], float | None],
    texts: Iterable[str],
    name: str = "",
    *,
    scale: float = 1,
) -> Part:
    """Return estimates with their intervals."""
    values = map(value, rows)
    return Part(
        values=tuple(None if figure is None else scale * figure for figure in values),
        low=tuple(scale * row.low for row in rows),
        high=tuple(scale * row.high for row in rows),
        texts=tuple(texts),
        name=name,
    )


def counts(values: Iterable[float], texts: Iterable[str], name: str = "") -> Part:
    """Return exact counts (or amounts), which have no interval."""
    return Part(values=tuple(values), texts=tuple(texts), name=name)


def curves(
    x: Sequence[X],
    named: Mapping[str, Sequence[T]],
    value: Callable[[T], float | None],
    text: Callable[[X, str, T], str],
    *,
    dots: bool = False,
) -> tuple[Part, ...]:
    """Return lines that are computed, not estimated: without intervals; `text` gets x and name."""
    return tuple(
        Part(
            x=tuple(x),
            values=tuple(map(value, points)),
            texts=tuple(text(at, name, point) for at, point in zip(x, points, strict=True)),
            name=name,
            dots=dots,
        )
        for name, points in named.items()
    )


def table_rows(
    x: Sequence[float], named: Mapping[str, Sequence[T]], text: Callable[[T], str]
) -> list[Row]:
    """Return the table of curves over numbers: a row for each number, a column for each curve."""
    columns = zip(x, *named.values(), strict=True)
    return [(f"{at:,}", *map(text, points)) for at, *points in columns]


def figures_of(parts: Iterable[Part]) -> list[float | None]:
    """Return all values of several parts."""
    return [value for part in parts for value in part.values]
