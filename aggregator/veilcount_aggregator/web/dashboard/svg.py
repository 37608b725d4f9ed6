"""The geometry of charts, which templates write as inline SVG: positions in percent of a plot.

They need no script, follow the theme by their classes, and stretch with the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .charts import Axis, Bars, Drawing, HeatMap, Lines, Part, StackedColumns
from .scales import (
    DIGITS,
    NARROW,
    WHOLE,
    Scale,
    Tick,
    axis_scale,
    axis_ticks,
    position,
    readable,
    rise,
    vertical,
)

HUES = ("one", "two", "three", "four", "five", "six", "seven")
REST = "rest"
HEADROOM = 1.05  # of the tallest column, or of the highest line
BAR, COLUMN = 0.58, 0.88  # of the height of a row, and of the width of a column
ROW, PART, GAP = 34, 20, 12  # pixels: a row of one part; one of several parts, and between rows
POINTED, POINT = "10", "4"  # radius in pixels: where a point reacts, and what is drawn of it
CHARACTER = 7  # pixels
LEAST_LEFT = 54  # pixels for the labels of the vertical axis
PALE, DARK = 0.06, 0.5  # the opacity of a heat map's least and greatest cell: texts stay readable

Points = Sequence[tuple[float, float | None]]


@dataclass(frozen=True, slots=True)
class DotRow:
    """A figure with its interval in a row, and what the row writes; positions in percent.

    `band` is where the figure may lie with fake reports; `before` is that of an earlier time.
    """

    name: str
    at: float
    low: float
    high: float
    cells: tuple[str, ...]
    band: tuple[float, float] | None = None
    before: float | None = None

    @classmethod
    def on(
        cls,
        scale: Scale,
        name: str,
        figure: tuple[float, float, float],
        cells: Iterable[str],
        *,
        band: tuple[float, float] | None = None,
        before: float | None = None,
    ) -> DotRow:
        """Return the row of a figure with the ends of its interval."""
        at, low, high = map(scale.at, figure)
        ends = None if band is None else (scale.at(band[0]), scale.at(band[1]))
        earlier = None if before is None else scale.at(before)
        return cls(name, at, low, high, tuple(cells), ends, earlier)


@dataclass(frozen=True, slots=True)
class DotPlot:
    """Figures with whiskers as a table: the drawing is one of its columns."""

    caption: str
    columns: tuple[str, ...]
    ticks: tuple[Tick, ...]
    rows: Sequence[DotRow]


@dataclass(frozen=True, slots=True)
class Gauge:
    """One amount of a greatest one, as a bar: how much is filled, and labelled positions."""

    text: str
    filled: float
    marks: Sequence[Tick]
    legend: str = ""

    @property
    def labels(self) -> list[tuple[Tick, int]]:
        """Each label with its line: the first, above the bar, or one below it that is free.

        Free on a narrow screen, so that labels never overlap on a wide one.
        """
        ends = [-WHOLE] * len(self.marks)
        placed = []
        for tick in self.marks:
            start, end = tick.ends(NARROW)
            line = next(line for line, free_from in enumerate(ends) if start >= free_from)
            ends[line] = end + NARROW
            placed.append((tick, line))
        return placed

    @property
    def lines(self) -> int:
        """How many lines the labels take, the one above the bar among them."""
        return 1 + max((line for _, line in self.labels), default=0)


# -- bars, columns and lines -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shape:
    """An SVG element: its tag, its class, and attributes with its position."""

    tag: str
    look: str
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Mark:
    """What is drawn of one figure, in one colour, and its text."""

    hue: str
    text: str
    shapes: tuple[Shape, ...]
    written: str = ""  # in the middle of the first shape
    middle: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Path:
    """A line, or the outline of a band, in percent of the plot."""

    hue: str
    look: str
    outline: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawn chart. `rows` are the labels of bars, in place of a vertical axis."""

    names: tuple[tuple[str, str], ...]
    x_title: str
    x: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    height: int
    y_title: str = ""
    y: tuple[Tick, ...] = ()
    rows: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()
    rule: Tick | None = None
    zero: float | None = None
    level: float | None = None  # of zero, between other numbers of a vertical axis

    @property
    def left(self) -> int:
        """The pixels that the labels of the vertical axis need."""
        longest = max((len(tick.text) for tick in self.y), default=0)
        return max(LEAST_LEFT, CHARACTER * longest + CHARACTER)


def draw(drawing: Drawing) -> Plot:
    """Return the geometry of a chart."""
    if isinstance(drawing, Bars):
        return _bars(drawing)
    if isinstance(drawing, HeatMap):
        return _heat_map(drawing)
    return _columns(drawing) if isinstance(drawing, StackedColumns) else _lines(drawing)


def _coloured(parts: Sequence[Part]) -> list[tuple[str, Part]]:
    return [
        (REST if part.rest else HUES[index % len(HUES)], part) for index, part in enumerate(parts)
    ]


def _names(parts: Sequence[Part]) -> tuple[tuple[str, str], ...]:
    """Return the legend: none for one part."""
    return tuple((hue, part.name) for hue, part in _coloured(parts) if len(parts) > 1)


def _bars(drawing: Bars) -> Plot:
    parts, rows = drawing.parts, drawing.labels
    scale = Scale.covering([0.0, *_ends(parts)])
    height = ROW if len(parts) == 1 else PART * len(parts) + GAP
    marks = (
        _bar(hue, part, row, _slot(row, len(rows), index, len(parts)), scale)
        for index, (hue, part) in enumerate(_coloured(parts))
        for row in range(len(rows))
        if part.values[row] is not None
    )
    return Plot(
        _names(parts),
        drawing.x.title,
        readable(scale.x_ticks(drawing.x.write)),
        tuple(marks),
        height * len(rows),
        rows=rows,
        zero=scale.at(0.0),
    )


def _slot(row: int, rows: int, index: int, parts: int) -> tuple[float, float]:
    """Return the top and the height of a bar in percent."""
    height = BAR / parts
    return WHOLE * (row + (1 - BAR) / 2 + index * height) / rows, WHOLE * height / rows


def _bar(hue: str, part: Part, row: int, slot: tuple[float, float], scale: Scale) -> Mark:
    zero, end = sorted((scale.at(0.0), scale.at(part.values[row] or 0.0)))
    top, height = slot
    low, high, middle = scale.at(part.low[row]), scale.at(part.high[row]), top + height / 2
    return Mark(
        hue,
        part.texts[row],
        (
            _rect("hit", 0.0, top, WHOLE, height),
            _rect("bar", zero, top, end - zero, height),
            _shape("line", "whisker", x1=low, x2=high, y1=middle, y2=middle),
        ),
    )


def _heat_map(drawing: HeatMap) -> Plot:
    part, rows, columns = drawing.part, len(drawing.rows), len(drawing.x.labels or ())
    width, height = WHOLE / columns, WHOLE / rows
    greatest = max((value or 0.0 for value in part.values), default=0.0)
    (hue, _), *_ = _coloured((part,))

    def cell(place: int) -> Mark:
        row, column = divmod(place, columns)
        x, y, value = column * width, row * height, part.values[place] or 0.0
        dark = PALE + (DARK - PALE) * max(value, 0.0) / greatest if greatest > 0 else PALE
        rect = _rect("heat", x, y, width, height)
        shade = Shape(rect.tag, rect.look, {**rect.attributes, "fill-opacity": f"{dark:.2f}"})
        middle = round(x + width / 2, DIGITS), round(y + height / 2, DIGITS)
        return Mark(hue, part.texts[place], (shade,), drawing.x.write(value), middle)

    return Plot(
        (),
        drawing.x.title,
        readable(axis_ticks(drawing.x, axis_scale(drawing.x, ()))),
        tuple(map(cell, range(len(part.values)))),
        ROW * rows,
        rows=drawing.rows,
    )


def _columns(drawing: StackedColumns) -> Plot:
    parts, columns = drawing.parts, len(drawing.x.labels or ())
    sums = [sum(part.values[column] or 0.0 for part in parts) for column in range(columns)]
    x, y = axis_scale(drawing.x, ()), Scale.covering((0.0, HEADROOM * max(sums, default=0.0)))
    return Plot(
        _names(parts),
        drawing.x.title,
        readable(axis_ticks(drawing.x, x)),
        tuple(_stacked(parts, columns, y)),
        drawing.height,
        drawing.y.title,
        vertical(axis_ticks(drawing.y, y)),
    )


def _stacked(parts: Sequence[Part], columns: int, y: Scale) -> Iterator[Mark]:
    bottoms = [0.0] * columns
    step = WHOLE / max(columns, 1)
    width = COLUMN * step
    for hue, part in _coloured(parts):
        for column, text in enumerate(part.texts):
            left, bottom = column * step + (step - width) / 2, bottoms[column]
            bottoms[column] += part.values[column] or 0.0
            top = rise(y.at(bottoms[column]))
            bar = _rect("bar whole", left, top, width, rise(y.at(bottom)) - top)
            around = () if len(parts) > 1 else (_rect("hit", left, 0.0, width, WHOLE),)
            yield Mark(hue, text, (*around, bar))


def _lines(drawing: Lines) -> Plot:
    parts = drawing.parts
    x = axis_scale(drawing.x, (value for part in parts for value in part.x))
    y = axis_scale(drawing.y, _ends(parts))
    lines = [(hue, part, _points(part, drawing.x, x, y)) for hue, part in _coloured(parts)]
    return Plot(
        _names(parts),
        drawing.x.title,
        readable(axis_ticks(drawing.x, x)),
        tuple(mark for line in lines for mark in _dots(*line)),
        drawing.height,
        drawing.y.title,
        vertical(axis_ticks(drawing.y, y)),
        paths=tuple(path for line in lines for path in _paths(*line, y)),
        rule=drawing.rule and Tick(x.at(drawing.rule[0]), drawing.rule[1]),
        level=rise(y.at(0.0)) if y.low < 0 < y.high else None,
    )


def _ends(parts: Sequence[Part]) -> list[float]:
    """Return all figures of some parts, and the ends of their intervals."""
    ends = (end for part in parts for end in (*part.low, *part.high, *part.values))
    return [end for end in ends if end is not None]


def _points(part: Part, axis: Axis, x: Scale, y: Scale) -> Points:
    return [
        (position(axis, x, at), None if value is None else rise(y.at(value)))
        for at, value in zip(part.x, part.values, strict=True)
    ]


def _dots(hue: str, part: Part, points: Points) -> Iterator[Mark]:
    """Yield a mark for each text but ""; without dots, a point shows when it is pointed at."""
    hollow = part.open or (False,) * len(points)
    look = "dot" if part.dots else "dot quiet"
    for (x, y), text, is_open in zip(points, part.texts, hollow, strict=False):
        if y is not None and text:
            centre = {"cx": _percent(x), "cy": _percent(y)}
            hit = Shape("circle", "hit", centre | {"r": POINTED})
            dot = Shape("circle", look + " hollow" * is_open, centre | {"r": POINT})
            yield Mark(hue, text, (hit, dot))


def _paths(hue: str, part: Part, points: Points, y: Scale) -> Iterator[Path]:
    abscissas = [x for x, _ in points]
    if part.low:
        upper = list(zip(abscissas, (rise(y.at(end)) for end in part.high), strict=True))
        lower = list(zip(abscissas, (rise(y.at(end)) for end in part.low), strict=True))
        yield Path(hue, "band", _outline([*upper, *reversed(lower)]) + "Z")
    yield Path(hue, "line dashed" if part.dashed else "line", _outline(points))


def _outline(points: Points) -> str:
    """Return a path through some points, with a gap where there is none."""
    drawn, command = "", "M"
    for x, y in points:
        if y is not None:
            drawn += f"{command}{x:g} {y:g}"
        command = "M" if y is None else "L"
    return drawn


# -- shapes ----------------------------------------------------------------------------------------


def _rect(look: str, x: float, y: float, width: float, height: float) -> Shape:
    return _shape("rect", look, x=x, y=y, width=width, height=height)


def _shape(tag: str, look: str, **positions: float) -> Shape:
    return Shape(tag, look, {name: _percent(at) for name, at in positions.items()})


def _percent(at: float) -> str:
    return f"{round(at, DIGITS):g}%"
