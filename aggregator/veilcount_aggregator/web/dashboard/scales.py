"""Where figures are along an axis, in percent, and which labels it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10

from .charts import Axis, AxisValue

STEPS = (1, 2, 5, 10)
MOST_TICKS = 5
DIGITS = 2  # of a position: a hundredth of a percent
WHOLE = 100.0  # percent
MARGIN = 0.03  # of an axis, at each end of its figures
WIDE, NARROW = 1.1, 3.0  # percent of a plot that a character takes
EDGE = 2.0  # percent


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled position on an axis; one that is `minor` is left out on a narrow screen."""

    at: float
    text: str
    minor: bool = False

    @property
    def anchor(self) -> str:
        """Which part of its text is at its position: at both ends, the text stays in the plot."""
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
        covered = list(figures)
        low, high = min(covered), max(covered)
        high = high if high > low else low + 1
        step = _step((high - low) / MOST_TICKS)
        ticks = range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)
        return cls(low, high, tuple(step * tick for tick in ticks))

    def at(self, figure: float) -> float:
        """Return the position of a figure in percent; one beyond the ends is at the end."""
        low, high, wanted = (
            log10(number) if self.logarithmic else number
            for number in (self.low, self.high, figure)
        )
        return round(WHOLE * min(max((wanted - low) / (high - low), 0.0), 1.0), DIGITS)

    def x_ticks(self, write: Callable[[float], str]) -> tuple[Tick, ...]:
        """Return the labels of an axis from left to right."""
        return tuple(Tick(self.at(tick), write(tick)) for tick in self.ticks)


def _step(least: float) -> float:
    """Return the smallest round number that is no smaller."""
    power = 10.0 ** floor(log10(least))
    return next(step * power for step in STEPS if step * power >= least * (1 - 1e-9))


def axis_scale(axis: Axis, values: Iterable[AxisValue]) -> Scale:
    """Return the scale of an axis that shows some values."""
    if axis.labels is not None:
        return Scale(0.0, max(len(axis.labels), 1))
    low, high = axis.ends or _around(
        [_figure(axis, value) for value in values], logarithmic=axis.logarithmic
    )
    return Scale(low, high, logarithmic=True) if axis.logarithmic else Scale.covering((low, high))


def _around(figures: Sequence[float], *, logarithmic: bool) -> tuple[float, float]:
    """Return the ends of an axis, a little beyond its figures."""
    low, high = min(figures), max(figures)
    if logarithmic:
        factor = (high / low) ** MARGIN
        return low / factor, high * factor
    return low - MARGIN * (high - low), high + MARGIN * (high - low)


def position(axis: Axis, scale: Scale, value: AxisValue) -> float:
    """Return the position of a figure, or of one of the labels, in percent."""
    return scale.at(_figure(axis, value))


def _figure(axis: Axis, value: AxisValue) -> float:
    return (axis.labels or ()).index(value) + 0.5 if isinstance(value, str) else value


def axis_ticks(axis: Axis, scale: Scale) -> tuple[Tick, ...]:
    """Return the labels of an axis, from its start."""
    if axis.labels is not None:
        return tuple(Tick(scale.at(n + 0.5), label) for n, label in enumerate(axis.labels))
    if axis.ticks is not None:
        return tuple(Tick(scale.at(figure), text) for figure, text in axis.ticks)
    return scale.x_ticks(axis.write)


def vertical(ticks: Iterable[Tick]) -> tuple[Tick, ...]:
    """Return labels with their positions from the top."""
    return tuple(replace(tick, at=rise(tick.at)) for tick in ticks)


def rise(at: float) -> float:
    """Return a position from the top."""
    return round(WHOLE - at, DIGITS)


def readable(ticks: Iterable[Tick]) -> tuple[Tick, ...]:
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
