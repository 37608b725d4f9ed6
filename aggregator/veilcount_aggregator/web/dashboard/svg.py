"""The geometry of charts that templates draw as inline SVG: figures as percent of a plot.

They need no script, follow the theme by their classes, and stretch with the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

STEPS = (1, 2, 5, 10)
MOST_TICKS = 5
DIGITS = 2  # of a position: a hundredth of a percent


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled place on an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Scale:
    """A range of figures along one axis, with round numbers to label."""

    low: float
    high: float
    ticks: tuple[float, ...]

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
        part = (figure - self.low) / (self.high - self.low)
        return round(100 * min(max(part, 0.0), 1.0), DIGITS)

    def rise(self, figure: float) -> float:
        """Return the place of a figure from the top."""
        return round(100 - self.at(figure), DIGITS)

    def x_ticks(self, write: Callable[[float], str]) -> tuple[Tick, ...]:
        """Return the labels of an axis from left to right."""
        return tuple(Tick(self.at(tick), write(tick)) for tick in self.ticks)

    def y_ticks(self, write: Callable[[float], str]) -> tuple[Tick, ...]:
        """Return the labels of an axis from the bottom."""
        return tuple(Tick(self.rise(tick), write(tick)) for tick in self.ticks)


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


@dataclass(frozen=True, slots=True)
class LinePlot:
    """A line with its band: paths in percent of the plot, and points that may be open."""

    name: str
    text: str
    band: str
    line: str
    points: Sequence[tuple[float, float, bool]]
    x: Sequence[Tick]
    y: Sequence[Tick]


def path(points: Iterable[tuple[float, float]], *, closed: bool = False) -> str:
    """Return a path through some points."""
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points) + ("Z" if closed else "")


def band_path(x: Sequence[float], low: Sequence[float], high: Sequence[float]) -> str:
    """Return the outline of a band."""
    upper, lower = list(zip(x, high, strict=True)), list(zip(x, low, strict=True))
    return path([*upper, *reversed(lower)], closed=True)
