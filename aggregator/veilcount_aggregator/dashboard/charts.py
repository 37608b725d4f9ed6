"""Charts, described: figures and words. How they look is the style sheet's and `chart.js`'s.

Whatever is an estimate brings its interval, and each of its points the sentence that is told when
it is touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor, log10
from typing import Any

from ..text.number_format import significant

Drawn = dict[str, Any]
Figures = Sequence[float | None]

CLOSE = 100  # two decades
MARGIN = 0.05  # of a decade, so that nothing lies on the edge
SHARE = {"format": ".1~%"}


def axis(title: str, **more: Any) -> Drawn:
    """Return an axis; `format` and `suffix` say how its figures are written, `type` may be log.

    `ticks` are the places that are marked, each with its text.
    """
    return {"title": title, **more}


def wide_axis(title: str, figures: Iterable[float | None], **more: Any) -> Drawn:
    """Return a logarithmic axis from a mark to a mark; few decades are marked at 1, 2 and 5."""
    some = [figure for figure in figures if figure] or [1.0]
    low, high = min(some), max(some)
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    steps = (1, 2, 5) if high <= CLOSE * low else (1,)
    places = [step * 10.0**decade for decade in decades for step in steps]
    first = max((place for place in places if place <= low), default=places[0])
    last = min((place for place in places if place >= high), default=places[-1])
    ticks = [(place, significant(place, 1)) for place in places if first <= place <= last]
    ends = [log10(first) - MARGIN, log10(last) + MARGIN]
    return axis(title, type="log", ticks=ticks, range=ends, **more)


def estimates(  # what one colour shows
    at: Figures, low: Figures, high: Figures, told: Sequence[str], name: str = "", **more: Any
) -> Drawn:
    """Return estimates with their intervals; `outer` may hold a wider one: name, low, high."""
    return {
        "at": list(at),
        "low": list(low),
        "high": list(high),
        "told": list(told),
        "name": name,
        **more,
    }


def counts(at: Sequence[float], told: Sequence[str], name: str = "") -> Drawn:
    """Return exact counts (or amounts), which have no interval."""
    return {"at": list(at), "told": list(told), "name": name}


def curve(x: Sequence[Any], at: Figures, told: Sequence[str], name: str = "", **more: Any) -> Drawn:
    """Return a line that is computed and not estimated, so that it has no interval."""
    return {"x": list(x), "at": list(at), "told": list(told), "name": name, "dots": False, **more}


def bars(labels: Sequence[str], parts: Sequence[Drawn], x: Drawn) -> Drawn:
    """Return horizontal bars with whiskers, one a label."""
    return {"kind": "bars", "labels": list(labels), "parts": list(parts), "x": x}


def columns(labels: Sequence[Any], parts: Sequence[Drawn], x: Drawn, y: Drawn) -> Drawn:
    """Return columns of counts."""
    return {"kind": "columns", "labels": list(labels), "parts": list(parts), "x": x, "y": y}


def lines(parts: Sequence[Drawn], x: Drawn, y: Drawn, marks: Sequence[Drawn] = ()) -> Drawn:
    """Return lines with bands over `x` of each part; `open` lists places that will still move."""
    return {"kind": "lines", "parts": list(parts), "x": x, "y": y, "marks": list(marks)}
