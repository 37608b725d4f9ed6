"""Charts as data: figures and texts. Colours and sizes are the style sheet's and `chart.js`'s.

Every estimate has its interval, and every point a text that is shown when it is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any, Protocol, TypeAlias, TypeVar

from veilcount_analysis.text.number_format import significant

Drawing: TypeAlias = dict[str, Any]
Row: TypeAlias = tuple[str, ...]
T = TypeVar("T")
R = TypeVar("R", bound="Interval")

TWO_DECADES = 100
MARGIN = 0.05  # of a decade, so that nothing lies on the edge
SHARE = {"format": ".1~%"}


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its caption, and the same figures as a table."""

    id: str
    drawing: Drawing
    caption: str
    columns: tuple[str, ...]
    rows: Sequence[Row]


def axis(title: str, **more: Any) -> Drawing:
    """Return an axis; `format` and `suffix` say how its figures are written, `type` may be log.

    `ticks` are the positions that are labelled, each with its text.
    """
    return {"title": title, **more}


def logarithmic_axis(title: str, figures: Iterable[float | None], **more: Any) -> Drawing:
    """Return a logarithmic axis from tick to tick; up to two decades have ticks at 1, 2 and 5."""
    positive = [figure for figure in figures if figure] or [1.0]
    low, high = min(positive), max(positive)
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    steps = (1, 2, 5) if high <= TWO_DECADES * low else (1,)
    places = [step * 10.0**decade for decade in decades for step in steps]
    first = max((place for place in places if place <= low), default=places[0])
    last = min((place for place in places if place >= high), default=places[-1])
    ticks = [(place, significant(place, 1)) for place in places if first <= place <= last]
    ends = [log10(first) - MARGIN, log10(last) + MARGIN]
    return axis(title, type="log", ticks=ticks, range=ends, **more)


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
    hover: Iterable[str],
    name: str = "",
    *,
    scale: float = 1,
) -> Drawing:
    """Return estimates with their intervals."""
    return {
        "values": [None if (found := value(row)) is None else scale * found for row in rows],
        "low": [scale * row.low for row in rows],
        "high": [scale * row.high for row in rows],
        "hover": list(hover),
        "name": name,
    }


def counts(values: Sequence[float], hover: Sequence[str], name: str = "") -> Drawing:
    """Return exact counts (or amounts), which have no interval."""
    return {"values": list(values), "hover": list(hover), "name": name}


def curves(
    x: Sequence[Any],
    named: Mapping[str, Sequence[T]],
    value: Callable[[T], float | None],
    hover: Callable[[Any, str, T], str],
    *,
    dots: bool = False,
) -> list[Drawing]:
    """Return lines that are computed, not estimated: without intervals; `hover` gets x and name."""
    return [
        {
            "x": list(x),
            "values": [value(each) for each in points],
            "hover": [hover(at, name, each) for at, each in zip(x, points, strict=True)],
            "name": name,
            "dots": dots,
        }
        for name, points in named.items()
    ]


def table_rows(
    x: Sequence[Any], named: Mapping[str, Sequence[T]], text: Callable[[T], str]
) -> list[Row]:
    """Return the table of curves over numbers: a row for each number, a column for each curve."""
    columns = zip(x, *named.values(), strict=True)
    return [(f"{at:,}", *map(text, points)) for at, *points in columns]


def figures_of(parts: Sequence[Drawing]) -> list[float | None]:
    """Return all values of several parts."""
    return [each for part in parts for each in part["values"]]


def bars(labels: Sequence[str], parts: Sequence[Drawing], x: Drawing) -> Drawing:
    """Return horizontal bars with whiskers, one for each label."""
    return {"kind": "bars", "labels": list(labels), "parts": list(parts), "x": x}


def columns(labels: Sequence[Any], parts: Sequence[Drawing], x: Drawing, y: Drawing) -> Drawing:
    """Return columns of counts."""
    return {"kind": "columns", "labels": list(labels), "parts": list(parts), "x": x, "y": y}


def lines(
    parts: Sequence[Drawing], x: Drawing, y: Drawing, marks: Sequence[Drawing] = ()
) -> Drawing:
    """Return lines."""
    return {"kind": "lines", "parts": list(parts), "x": x, "y": y, "marks": list(marks)}
