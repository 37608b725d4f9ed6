"""The geometry of charts, which templates write as inline SVG: figures as percent of a plot.

They need no script, follow the theme by their classes, and stretch with the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10

from .charts import Axis, Bars, Columns, Drawing, Lines, Part, Place

STEPS = (1, 2, 5, 10)
MOST_TICKS = 5
DIGITS = 2  # of a position: a hundredth of a percent
WHOLE = 100.0  # percent
HUES = ("one", "two", "three", "four", "five", "six", "seven")
REST = "rest"
MARGIN = 0.03  # of an axis, at each end of its figures
HEADROOM = 1.05  # of the tallest column
BAR, COLUMN = 0.58, 0.88  # of the room of a row and of a column
ROW, PART, AROUND = 34, 20, 12  # pixels: of a row with one part; of each of several, and between
POINTED, POINT = "10", "4"  # radius in pixels: where a point reacts, and what is drawn of it
CHARACTER = 7  # pixels
LEAST_LEFT = 54  # pixels for the labels of the vertical axis
WIDE, NARROW = 1.1, 3.0  # percent of a plot that a character takes
EDGE = 2.0  # percent


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled place on an axis; one that is `minor` has no room on a narrow screen."""

    at: float
    text: str
    minor: bool = False

    @property
    def anchor(self) -> str:
        """How its text stands to its place: within the plot at both ends."""
        return "start" if self.at < EDGE else "end" if self.at > WHOLE - EDGE else "middle"

    def ends(self, character: float) -> tuple[float, float]:
        """Return where its text begins and ends in percent, of characters of a width."""
        width = character * len(self.text)
        start = self.at - {"start": 0, "middle": 0.5, "end": 1}[self.anchor] * width
        return start, start + width


@dataclass(frozen=True, slots=True)
class Scale:
    """A range of figures along one axis, with round numbers to label."""

    low: float
    high: float
    ticks: tuple[float, ...] = ()
    logarithmic: bool = False

    @classmethod
    def covering(cls, figures: Iterable[float]) -> Scale:
        """Return the scale from the lowest to the highest figure."""
        known = list(figures)
        low, high = min(known), max(known)
        high = high if high > low else low + 1
        step = _step((high - low) / MOST_TICKS)
        ticks = range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)
        return cls(low, high, tuple(step * tick for tick in ticks))

    def at(self, figure: float) -> float:
        """Return the place of a figure in percent; one beyond the ends is at the end."""
        low, high, place = (
            log10(each) if self.logarithmic else each for each in (self.low, self.high, figure)
        )
        return round(WHOLE * min(max((place - low) / (high - low), 0.0), 1.0), DIGITS)

    def x_ticks(self, write: Callable[[float], str]) -> tuple[Tick, ...]:
        """Return the labels of an axis from left to right."""
        return tuple(Tick(self.at(tick), write(tick)) for tick in self.ticks)


def _step(least: float) -> float:
    """Return the smallest round number that is no smaller."""
    power = 10.0 ** floor(log10(least))
    return next(step * power for step in STEPS if step * power >= least * (1 - 1e-9))


@dataclass(frozen=True, slots=True)
class DotRow:
    """A figure with its interval in a row, and what the row writes; places in percent.

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
        past = None if before is None else scale.at(before)
        return cls(name, at, low, high, tuple(cells), ends, past)


@dataclass(frozen=True, slots=True)
class DotPlot:
    """Figures with whiskers as a table: the drawing is one of its columns."""

    caption: str
    columns: tuple[str, ...]
    ticks: tuple[Tick, ...]
    rows: Sequence[DotRow]


@dataclass(frozen=True, slots=True)
class Gauge:
    """One amount of a greatest one, as a bar: how much is filled, and places with a label."""

    text: str
    filled: float
    marks: Sequence[Tick]
    legend: str = ""


# -- bars, columns and lines -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shape:
    """An SVG element: its tag, its class and where it is."""

    tag: str
    look: str
    places: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Mark:
    """What is drawn of one figure, in one colour, and its text."""

    hue: str
    text: str
    shapes: tuple[Shape, ...]


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

    @property
    def left(self) -> int:
        """The pixels that the labels of the vertical axis need."""
        longest = max((len(tick.text) for tick in self.y), default=0)
        return max(LEAST_LEFT, CHARACTER * longest + CHARACTER)


def draw(drawing: Drawing) -> Plot:
    """Return the geometry of a chart."""
    if isinstance(drawing, Bars):
        return _bars(drawing)
    return _columns(drawing) if isinstance(drawing, Columns) else _lines(drawing)


def _coloured(parts: Sequence[Part]) -> list[tuple[str, Part]]:
    return [
        (REST if part.rest else HUES[place % len(HUES)], part) for place, part in enumerate(parts)
    ]


def _names(parts: Sequence[Part]) -> tuple[tuple[str, str], ...]:
    """Return the legend: none for one part."""
    return tuple((hue, part.name) for hue, part in _coloured(parts) if len(parts) > 1)


def _bars(drawing: Bars) -> Plot:
    parts, rows = drawing.parts, drawing.labels
    figures = (end for part in parts for end in (*part.low, *part.high, *part.values))
    scale = Scale.covering([0.0, *(each for each in figures if each is not None)])
    height = ROW if len(parts) == 1 else PART * len(parts) + AROUND
    marks = (
        _bar(hue, part, row, _slot(row, len(rows), place, len(parts)), scale)
        for place, (hue, part) in enumerate(_coloured(parts))
        for row in range(len(rows))
        if part.values[row] is not None
    )
    return Plot(
        _names(parts),
        drawing.x.title,
        _readable(scale.x_ticks(drawing.x.write)),
        tuple(marks),
        height * len(rows),
        rows=rows,
        zero=scale.at(0.0),
    )


def _slot(row: int, rows: int, place: int, parts: int) -> tuple[float, float]:
    """Return the top and the height of a bar in percent."""
    height = BAR / parts
    return WHOLE * (row + (1 - BAR) / 2 + place * height) / rows, WHOLE * height / rows


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


def _columns(drawing: Columns) -> Plot:
    parts, columns = drawing.parts, len(drawing.x.labels or ())
    sums = [sum(part.values[place] or 0.0 for part in parts) for place in range(columns)]
    x, y = _scale(drawing.x, ()), Scale.covering((0.0, HEADROOM * max(sums, default=0.0)))
    return Plot(
        _names(parts),
        drawing.x.title,
        _readable(_ticks(drawing.x, x)),
        tuple(_stacked(parts, columns, y)),
        drawing.height,
        drawing.y.title,
        _risen(_ticks(drawing.y, y)),
    )


def _stacked(parts: Sequence[Part], columns: int, y: Scale) -> Iterator[Mark]:
    bottoms = [0.0] * columns
    room = WHOLE / max(columns, 1)
    width = COLUMN * room
    for hue, part in _coloured(parts):
        for place, text in enumerate(part.texts):
            left, bottom = place * room + (room - width) / 2, bottoms[place]
            bottoms[place] += part.values[place] or 0.0
            top = _rise(y.at(bottoms[place]))
            bar = _rect("bar whole", left, top, width, _rise(y.at(bottom)) - top)
            around = () if len(parts) > 1 else (_rect("hit", left, 0.0, width, WHOLE),)
            yield Mark(hue, text, (*around, bar))


def _lines(drawing: Lines) -> Plot:
    parts = drawing.parts
    x = _scale(drawing.x, (_figure(drawing.x, at) for part in parts for at in part.x))
    ends = (end for part in parts for end in (*part.low, *part.high, *part.values))
    y = _scale(drawing.y, (end for end in ends if end is not None))
    placed = [(hue, part, _placed(part, drawing.x, x, y)) for hue, part in _coloured(parts)]
    return Plot(
        _names(parts),
        drawing.x.title,
        _readable(_ticks(drawing.x, x)),
        tuple(mark for each in placed for mark in _points(*each)),
        drawing.height,
        drawing.y.title,
        _risen(_ticks(drawing.y, y)),
        paths=tuple(path for each in placed for path in _paths(*each, y)),
        rule=drawing.rule and Tick(x.at(drawing.rule[0]), drawing.rule[1]),
    )


Places = Sequence[tuple[float, float | None]]


def _placed(part: Part, axis: Axis, x: Scale, y: Scale) -> Places:
    return [
        (x.at(_figure(axis, at)), None if value is None else _rise(y.at(value)))
        for at, value in zip(part.x, part.values, strict=True)
    ]


def _points(hue: str, part: Part, places: Places) -> Iterator[Mark]:
    """Yield a mark for each text; a line without dots shows a point when it is pointed at."""
    open_ = part.open or (False,) * len(places)
    for (x, y), text, hollow in zip(places, part.texts, open_, strict=False):
        if y is not None:
            look = "dot" if part.dots else "dot quiet"
            circles = (("hit", POINTED), (look + " hollow" * hollow, POINT))
            yield Mark(
                hue,
                text,
                tuple(
                    Shape("circle", look, {"cx": _percent(x), "cy": _percent(y), "r": radius})
                    for look, radius in circles
                ),
            )


def _paths(hue: str, part: Part, places: Places, y: Scale) -> Iterator[Path]:
    across = [x for x, _ in places]
    if part.low:
        upper = list(zip(across, (_rise(y.at(end)) for end in part.high), strict=True))
        lower = list(zip(across, (_rise(y.at(end)) for end in part.low), strict=True))
        yield Path(hue, "band", _outline([*upper, *reversed(lower)]) + "Z")
    yield Path(hue, "line dashed" if part.dashed else "line", _outline(places))


def _outline(places: Places) -> str:
    """Return a path through some points, with a gap where there is none."""
    drawn, command = "", "M"
    for x, y in places:
        if y is not None:
            drawn += f"{command}{x:g} {y:g}"
        command = "M" if y is None else "L"
    return drawn


# -- axes ------------------------------------------------------------------------------------------


def _scale(axis: Axis, figures: Iterable[float]) -> Scale:
    if axis.labels is not None:
        return Scale(0.0, max(len(axis.labels), 1))
    low, high = axis.ends or _around(list(figures), logarithmic=axis.logarithmic)
    return Scale(low, high, logarithmic=True) if axis.logarithmic else Scale.covering((low, high))


def _around(figures: Sequence[float], *, logarithmic: bool) -> tuple[float, float]:
    """Return the ends of an axis, a little beyond its figures."""
    low, high = min(figures), max(figures)
    if logarithmic:
        factor = (high / low) ** MARGIN
        return low / factor, high * factor
    return low - MARGIN * (high - low), high + MARGIN * (high - low)


def _figure(axis: Axis, place: Place) -> float:
    return (axis.labels or ()).index(place) + 0.5 if isinstance(place, str) else place


def _ticks(axis: Axis, scale: Scale) -> tuple[Tick, ...]:
    if axis.labels is not None:
        return tuple(Tick(scale.at(n + 0.5), label) for n, label in enumerate(axis.labels))
    if axis.ticks is not None:
        return tuple(Tick(scale.at(place), text) for place, text in axis.ticks)
    return scale.x_ticks(axis.write)


def _risen(ticks: Iterable[Tick]) -> tuple[Tick, ...]:
    return tuple(replace(tick, at=_rise(tick.at)) for tick in ticks)


def _rise(at: float) -> float:
    """Return a place from the top."""
    return round(WHOLE - at, DIGITS)


def _readable(ticks: Iterable[Tick]) -> tuple[Tick, ...]:
    """Return the labels that do not run into each other."""
    wide = _apart(ticks, WIDE)
    narrow = _apart(wide, NARROW)
    return tuple(replace(tick, minor=tick not in narrow) for tick in wide)


def _apart(ticks: Iterable[Tick], character: float) -> list[Tick]:
    kept: list[Tick] = []
    free = -WHOLE
    for tick in ticks:
        start, end = tick.ends(character)
        if start >= free:
            kept.append(tick)
            free = end + character  # a gap
    return kept


# -- shapes ----------------------------------------------------------------------------------------


def _rect(look: str, x: float, y: float, width: float, height: float) -> Shape:
    return _shape("rect", look, x=x, y=y, width=width, height=height)


def _shape(tag: str, look: str, **places: float) -> Shape:
    return Shape(tag, look, {name: _percent(place) for name, place in places.items()})


def _percent(place: float) -> str:
    return f"{round(place, DIGITS):g}%"
