"""The status of a collection on a day (not begun, open, ended, closed), and its trend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum

from veilcount_analysis.series.series import Series
from veilcount_analysis.text.utc_days import day, days
from veilcount_shared.periods import Unit
from veilcount_shared.schedule import period_start

from ...store import Cell

PERIODS = {Unit.EVENT: "day", Unit.DAY: "day", Unit.WEEK: "week", Unit.MONTH: "month"}
TREND = 24  # periods that a trend shows
LEAST = 3  # fewer make no trend
WIDTH, HEIGHT, GAP = 4.0, 26.0, 2.0  # of a trend's column, in the units of the page


class State(StrEnum):
    """Whether reports are accepted; in the order of the overview."""

    OPEN = "open"
    COMING = "not begun"
    ENDED = "ended"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """A state, and the days it depends on."""

    state: State
    when: str
    then: str = ""

    @property
    def text(self) -> str:
        """Both in a row."""
        return f"{self.when}, {self.then}" if self.then else self.when


def collection_status(series: Series, today: date) -> CollectionStatus:
    """Return the status of a series on a UTC day."""
    collection = series.collection
    if series.closed:
        return CollectionStatus(State.CLOSED, "accepts no more reports")
    if today < collection.start:
        return CollectionStatus(
            State.COMING, f"from {day(collection.start)}", _in(collection.start - today)
        )
    if today < collection.until:
        return CollectionStatus(
            State.OPEN, f"until {day(collection.until)}", _in(collection.until - today)
        )
    last = collection.until + timedelta(days=collection.late)
    if today < last:
        return CollectionStatus(
            State.ENDED, f"on {day(collection.until)}", f"late reports until {day(last)}"
        )
    return CollectionStatus(State.ENDED, f"on {day(collection.until)}")


def _in(time: timedelta) -> str:
    return "tomorrow" if time.days == 1 else f"in {time.days:,} days"


TrendColumn = tuple[float, float, float, bool]  # a period: x, y, height, whether it is open


@dataclass(frozen=True, slots=True)
class ReportTrend:
    """Exact counts of reports in the last periods."""

    label: str
    width: float
    height: float
    column: float
    columns: tuple[TrendColumn, ...]


def trend(series: Series, sizes: Mapping[Cell, int], today: date) -> ReportTrend | None:
    """Return the trend of the periods that have begun; None: too few periods, or no report."""
    word = PERIODS.get(series.collection.unit)
    oldest, newest = series.open_periods(today)
    shown = range(max(0, newest + 1 - TREND), newest + 1)
    if word is None or len(shown) < LEAST:
        return None
    by_period = reports_by_period(sizes)
    counts = [by_period.get(period, 0) for period in shown]
    if not any(counts):
        return None
    open_periods = [not series.closed and period >= oldest for period in shown]
    first, last = (period_start(series.collection, shown[end]).date() for end in (0, -1))
    still = f"; the last {sum(open_periods):,} are open" if any(open_periods) else ""
    label = f"Reports per {word}, {days(first, last)}: {min(counts):,} to {max(counts):,}{still}"
    step = WIDTH + GAP
    return ReportTrend(
        label, len(shown) * step, HEIGHT, WIDTH, _columns(counts, open_periods, step)
    )


def reports_by_period(sizes: Mapping[Cell, int]) -> dict[int, int]:
    """Return how many reports each period holds, all segments together."""
    by_period: dict[int, int] = {}
    for cell, number in sizes.items():
        by_period[cell.period] = by_period.get(cell.period, 0) + number
    return by_period


def _columns(counts: list[int], open_periods: list[bool], step: float) -> tuple[TrendColumn, ...]:
    most = max(counts)
    heights = [round(max(1.0, (HEIGHT - 1) * count / most), 2) for count in counts]
    return tuple(
        (round(place * step, 2), round(HEIGHT - height, 2), height, is_open)
        for place, (height, is_open) in enumerate(zip(heights, open_periods, strict=True))
    )
