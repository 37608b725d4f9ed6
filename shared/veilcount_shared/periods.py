"""Units and their periods: UTC calendar ranges, numbered from the one that contains `from`.

An event's period is its day; a week is ISO's, Monday to Sunday; the user has one period, the
campaign. The first and last period of a campaign may be cut by its dates.
"""

from __future__ import annotations

from datetime import date, timedelta
from enum import StrEnum

DAYS_A_WEEK = 7
MONTHS_A_YEAR = 12
#: a period's spent slots outlive `late` by so many days: a clock that is set back finds them
GRACE = timedelta(days=1)
#: the rows of dropped periods stay for so long: with them a drop by a wrong clock can be undone.
#: The notice promises both to people, and the aggregator keeps them.
RECOVERABLE = timedelta(days=1)


class Unit(StrEnum):
    """What epsilon protects."""

    EVENT = "event"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    USER = "user"


def period_name(unit: Unit) -> str:
    """Return what a unit's period is called."""
    return {Unit.EVENT: "day", Unit.USER: "campaign"}.get(unit, str(unit))


def period_number(unit: Unit, start: date, day: date) -> int:
    """Return the number of the period that contains a day; negative before the first."""
    if unit is Unit.WEEK:
        return (_monday(day) - _monday(start)).days // DAYS_A_WEEK
    if unit is Unit.MONTH:
        return _month(day) - _month(start)
    if unit is Unit.USER:
        return 0 if day >= start else -1
    return (day - start).days


def first_day(unit: Unit, start: date, period: int) -> date:
    """Return the first day of a period (of its calendar range, though the campaign may cut it)."""
    if unit is Unit.WEEK:
        return _monday(start) + timedelta(days=DAYS_A_WEEK * period)
    if unit is Unit.MONTH:
        year, month = divmod(_month(start) + period, MONTHS_A_YEAR)
        return date(year, month + 1, 1)
    if unit is Unit.USER:
        return start
    return start + timedelta(days=period)


def calendar_range(unit: Unit, start: date, until: date, period: int) -> tuple[date, date]:
    """Return the first day of a period's whole day, week or month, and the first day after it.

    The campaign does not cut it: a month is paid for as a month, whenever the campaign begins.
    """
    if unit is Unit.USER:
        return start, until
    return first_day(unit, start, period), first_day(unit, start, period + 1)


def count_periods(unit: Unit, start: date, until: date) -> int:
    """Return how many periods a campaign touches; `until` is the first day after it."""
    return period_number(unit, start, until - timedelta(days=1)) + 1


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _month(day: date) -> int:
    return day.year * MONTHS_A_YEAR + day.month - 1
