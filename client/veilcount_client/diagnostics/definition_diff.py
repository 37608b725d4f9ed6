"""What a new definitions file would change: `python -m veilcount_client check new --was old`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from veilcount_shared import Collection, lint, periods
from veilcount_shared.collection import describe_answers
from veilcount_shared.collection.canonical import canonical_fields
from veilcount_shared.errors import format_value
from veilcount_shared.periods import Unit, period_name

from ..recording import budget_reservation
from .problems import Collections, DiagnosticResult
from .state_checks import NotesOverlay

FIGURES = (("event", "epsilon_event"), ("day", "epsilon_day"), ("user", "epsilon_user"))
NAMES = {"per_day": "per_day"}  # in the file it is called so
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
DERIVED = "mechanism"  # follows from the other keys, and is named where none of them changed


def compare(new: Collections, old: Collections | None) -> Iterator[DiagnosticResult]:
    """Yield what deserves a decision, collection by collection, with remarks; then what is gone."""
    for name, collection in new.items():
        before = old and (old.get(name) or old.get(collection.replaces or ""))
        findings = _compare_one(collection, before) if before else _describe(collection)
        for ok, message in findings:
            yield DiagnosticResult(name, ok, message)
        if not before and old is not None:
            message = "new: consent does not cover it, ask again where client.must_ask is true"
            yield DiagnosticResult(name, False, message)
        for remark in lint(collection):
            yield DiagnosticResult(name, True, f"remark on {remark.key}: {remark.text}")
    if old is not None:
        yield from _removed(new, old)
        yield from _refused(new, old)


def _compare_one(new: Collection, old: Collection) -> Iterator[Finding]:
    yield _series(new, old)
    yield from _spending(new, old)
    yield from _left(new, old)
    yield from _paid(new, old)


def _describe(new: Collection) -> Iterator[Finding]:
    figures = [f"{format_value(getattr(new, key))} per {unit}" for unit, key in FIGURES]
    yield True, f"epsilon {', '.join(figures)}"
    if answers := describe_answers(new):
        yield True, answers


def _series(new: Collection, old: Collection) -> Finding:
    """Return whether the same series goes on."""
    if keys := changed(new, old):
        message = f"{', '.join(keys)} changed: a new series begins, never summed with the old;"
        return False, f"{message} consent does not cover it, ask again"
    return True, "the same series"


def changed(new: Collection, old: Collection) -> list[str]:
    """Return the fingerprinted keys in which two definitions differ, as the file calls them."""
    before, after = (canonical_fields(form, form.mechanism) for form in (old, new))
    keys = [key for key in {**before, **after} if after.get(key) != before.get(key)]
    named = [key for key in keys if key != DERIVED] or keys
    return [NAMES.get(key, key) for key in named]


def _spending(new: Collection, old: Collection) -> Iterator[Finding]:
    more = [
        f"{format_value(getattr(old, key))} -> {format_value(getattr(new, key))} per {unit}"
        for unit, key in FIGURES
        if getattr(new, key) > getattr(old, key)
    ]
    if more:
        yield False, f"spends more, epsilon {', '.join(more)}: is it worth it?"


def _left(new: Collection, old: Collection) -> Iterator[Finding]:
    """Yield a finding if a person who answered all of the old form can answer none of the new."""
    began_before = new.start > old.start
    begun = periods.count_periods(old.unit, old.start, new.start) if began_before else 0
    spent = old.epsilon_within(begun)
    if new.epsilon_user - spent < new.unit_epsilon:
        message = (
            "who answered all of the old one has nothing left to spend: give it a new name, or"
        )
        yield False, f"{message} let it ask for more in all, under a larger ceiling"


def _paid(new: Collection, old: Collection) -> Iterator[Finding]:
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


def _removed(new: Collections, old: Collections) -> Iterator[DiagnosticResult]:
    remaining = {*new, *(collection.replaces for collection in new.values())}
    for name in old:
        if name not in remaining:
            message = f'gone: what it reserved stays reserved (if renamed: replaces = "{name}")'
            yield DiagnosticResult(name, True, message)


def _refused(new: Collections, old: Collections) -> Iterator[DiagnosticResult]:
    """Yield what a device that began with the old file would refuse to load."""
    notes = NotesOverlay()
    budget_reservation.reserve(notes, old.values())
    for name, why in budget_reservation.reserve(notes, new.values()).refused.items():
        message = f"refused at load by devices that began with the old file: {why}"
        yield DiagnosticResult(name, False, message)
