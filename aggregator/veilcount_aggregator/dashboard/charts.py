"""Charts, described: figures and words. How they look is the style sheet's and `chart.js`'s.

Whatever is an estimate brings its interval, and each of its points the sentence that is told when
it is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Drawn = dict[str, Any]
Figures = Sequence[float | None]

SHARE = {"format": ".1~%"}


def axis(title: str, **more: Any) -> Drawn:
    """Return an axis; `format` and `suffix` say how its figures are written, `type` may be log."""
    return {"title": title, **more}


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


def counts(at: Sequence[int], told: Sequence[str], name: str = "") -> Drawn:
    """Return exact counts, which have no interval."""
    return {"at": list(at), "told": list(told), "name": name}


def bars(labels: Sequence[str], parts: Sequence[Drawn], x: Drawn) -> Drawn:
    """Return horizontal bars with whiskers, one a label."""
    return {"kind": "bars", "labels": list(labels), "parts": list(parts), "x": x}


def columns(labels: Sequence[Any], parts: Sequence[Drawn], x: Drawn, y: Drawn) -> Drawn:
    """Return columns of counts."""
    return {"kind": "columns", "labels": list(labels), "parts": list(parts), "x": x, "y": y}


def lines(parts: Sequence[Drawn], x: Drawn, y: Drawn, marks: Sequence[Drawn] = ()) -> Drawn:
    """Return lines with bands over `x` of each part; `open` lists places that will still move."""
    return {"kind": "lines", "parts": list(parts), "x": x, "y": y, "marks": list(marks)}
