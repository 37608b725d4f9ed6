"""Where a collection stands on a day: not begun, open, ended or closed; and how n came together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum

from veilcount_shared.periods import Unit
from veilcount_shared.schedule import period_start

from ..series.series import Series
from ..store import Cell

PERIODS = {Unit.EVENT: "day", Unit.DAY: "day", Unit.WEEK: "week", Unit.MONTH: "month"}
TREND = 24  # periods that a trend shows
LEAST = 3  # fewer make no trend
WIDTH, HEIGHT, GAP = 4.0, 26.0, 2.0  # of a trend's column, in the units of the page


class State(StrEnum):
    """Whether answers are taken; in the order in which they are listed."""

    OPEN = "open"
    COMING = "not begun"
    ENDED = "ended"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Standing:
    """A state, and the days that go with it, in words; a day is written without a break."""

    state: State
    when: str
    then: str = ""

    @property
    def says(self) -> str:
        """All of it."""
        return f"{self.when}, {self.then}" if self.then else self.when


def standing(series: Series, today: date) -> Standing:
    """Return where a series stands on a UTC day."""
    collection = series.collection
    if series.closed:
        return Standing(State.CLOSED, "takes no more answers")
    if today < collection.start:
        return Standing(State.COMING, f"from {collection.start}", _in(collection.start - today))
    if today < collection.until:
        return Standing(State.OPEN, f"until {collection.until}", _in(collection.until - today))
    last = collection.until + timedelta(days=collection.late)
    if today < last:
        return Standing(State.ENDED, f"on {collection.until}", f"late answers until {last}")
    return Standing(State.ENDED, f"on {collection.until}")


def _in(time: timedelta) -> str:
    return "tomorrow" if time.days == 1 else f"in {time.days:,} days"


@dataclass(frozen=True, slots=True)
class Column:
    """One period of a trend, as a page draws it."""

    x: float
    y: float
    height: float
    filling: bool


@dataclass(frozen=True, slots=True)
class Trend:
    """How many answers each of the last periods brought: exact counts."""

    label: str
    width: float
    height: float
    column: float
    columns: tuple[Column, ...]


def trend(series: Series, sizes: Mapping[Cell, int], today: date) -> Trend | None:
    """Return the trend of the periods that have begun; None: there are too few."""
    word = PERIODS.get(series.collection.unit)
    oldest, newest = series.taken(today)
    shown = range(max(0, newest + 1 - TREND), newest + 1)
    if word is None or len(shown) < LEAST:
        return None
    by_period = counts_of(sizes)
    counts = [by_period.get(period, 0) for period in shown]
    if not any(counts):
        return None
    filling = [not series.closed and period >= oldest for period in shown]
    first, last = (period_start(series.collection, shown[end]).date() for end in (0, -1))
    still = f"; the last {sum(filling):,} take answers still" if any(filling) else ""
    label = f"Answers a {word}, {first} to {last}: {min(counts):,} to {max(counts):,}{still}"
    step = WIDTH + GAP
    return Trend(label, len(shown) * step, HEIGHT, WIDTH, _columns(counts, filling, step))


def counts_of(sizes: Mapping[Cell, int]) -> dict[int, int]:
    """Return how many reports each period holds, all segments together."""
    found: dict[int, int] = {}
    for cell, number in sizes.items():
        found[cell.period] = found.get(cell.period, 0) + number
    return found


def _columns(counts: list[int], filling: list[bool], step: float) -> tuple[Column, ...]:
    most = max(counts)
    heights = [round(max(1.0, (HEIGHT - 1) * each / most), 2) for each in counts]
    return tuple(
        Column(round(place * step, 2), round(HEIGHT - height, 2), height, still)
        for place, (height, still) in enumerate(zip(heights, filling, strict=True))
    )
