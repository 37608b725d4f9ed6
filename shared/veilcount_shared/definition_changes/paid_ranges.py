"""Which time a person paid for under an earlier form of a question, and when the new one begins."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from .. import periods
from ..collection import Collection
from ..periods import Unit, period_name

DAY = timedelta(days=1)
Finding = tuple[bool, str]  # ok, and what to know or to do
DayRange = tuple[date, date]  # the first day, and the first day after
_OFTEN = {
    Unit.EVENT: "answers",
    Unit.DAY: "daily answers",
    Unit.WEEK: "weekly answers",
    Unit.MONTH: "monthly answers",
    Unit.USER: "answers",
}


def when_answered_again(new: Collection, old: Collection) -> Iterator[Finding]:
    """Yield from when on a person who answered the old form answers the new one.

    The budget ledger counts by a unit's whole day, week or month. A time range that overlaps one
    that was paid for under another unit is refused; the same range spends what its cap leaves.
    """
    (began, ended), (begins, ends) = _reach(old), _reach(new)
    first = max(began, begins)  # the two campaigns' first common day, of all that are alike
    if new.fingerprint != old.fingerprint and first < min(ended, ends):
        paid = _range(old, first)
        yield _again(new, old, paid, same=paid == _range(new, first))


def _again(new: Collection, old: Collection, paid: DayRange, *, same: bool) -> Finding:
    """Return what is left of a range that was paid for, or when the new form begins after it."""
    who = f"who answered {_when(old, paid)}under the old form"
    left = (new.epsilon_day - old.epsilon_day) // new.unit_epsilon if same else 0
    after = _range(new, paid[1] - DAY)[1]
    if left > 0:
        return True, f"{who} has at most {left} answers left of the same {period_name(new.unit)}"
    if after >= new.until:
        return False, f"{who} answers nothing of the new form"
    if same:
        return True, f"{who} answers the new form from {after} on"
    consequence = (
        "" if old.unit is Unit.USER else f", and so for every {period_name(old.unit)} answered"
    )
    waits = f"unit {old.unit} -> {new.unit}: {who} gives no {_OFTEN[new.unit]} before {after}"
    return False, f"{waits}{consequence}: no time is paid for twice"


def _reach(collection: Collection) -> DayRange:
    """Return the whole days, weeks or months that a campaign touches, which its dates may cut."""
    first, last = collection.start, collection.until - DAY
    return _range(collection, first)[0], _range(collection, last)[1]


def _range(collection: Collection, day: date) -> DayRange:
    """Return a unit's whole day, week or month around a day."""
    unit, start, until = collection.unit, collection.start, collection.until
    return periods.calendar_range(unit, start, until, periods.period_number(unit, start, day))


def _when(collection: Collection, days: DayRange) -> str:
    """Return a range in words, with the space that follows them."""
    first = days[0]
    match collection.unit:
        case Unit.USER:
            return ""
        case Unit.MONTH:
            return f"in {first:%Y-%m} "
        case Unit.WEEK:
            return f"in the week of {first} "
        case _:
            return f"on {first} "
