"""UTC days as people write them."""

from __future__ import annotations

from datetime import date, timedelta

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def day(when: date) -> str:
    """Return a UTC day, as people write it."""
    return f"{when.day} {MONTHS[when.month - 1]} {when.year}"


def first_day(first: date, last: date) -> str:
    """Return the first of some days, without what it has in common with the last."""
    if first.year != last.year:
        return day(first)
    return f"{first.day}" if first.month == last.month else f"{first.day} {MONTHS[first.month - 1]}"


def days(first: date, last: date) -> str:
    """Return the UTC days from a first to a last."""
    return day(first) if first == last else f"{first_day(first, last)} to {day(last)}"


def in_days(first: date, last: date) -> str:
    """Return some days as an adverbial: "in Nov 2026", "on 3 Nov 2026", "from 3 to 9 Nov 2026"."""
    if first == last:
        return f"on {day(first)}"
    after = last + timedelta(days=1)
    if first.day == after.day == 1 and first.month == last.month and first.year == last.year:
        return f"in {MONTHS[first.month - 1]} {first.year}"
    return f"from {days(first, last)}"
