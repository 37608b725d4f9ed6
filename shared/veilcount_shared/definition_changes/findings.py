"""What deserves a decision before a changed definitions file is shipped, one line each.

Among it: which time a person paid for under an earlier form of a question.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from fractions import Fraction

from .. import periods
from ..budget_claims import fit, total
from ..collection import Collection, describe_answers, lint
from ..diagnostic_result import DiagnosticResult
from ..errors import format_value
from ..notice import Notice, Texts, notice
from ..periods import Unit, period_name
from .changes import NO_COMMITS, FileChange, QuestionChange, spending

DAY = timedelta(days=1)
Finding = tuple[bool, str]  # ok, and what to know or to do
DayRange = tuple[date, date]  # the first day, and the first day after
#: the notice's figures on a guess, by kind of answer
GUESSES = frozenset(
    f"notice_guess_{kind}" for kind in ("report", "reports", "trend", "release", "releases")
)
IDENTITY = "notice_identity"  # the fingerprint: it differs wherever anything does
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
    """Return how many answers are left of a paid range, or when the new form begins after it."""
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


FIGURES = (("event", "epsilon_event"), ("day", "epsilon_day"), ("user", "epsilon_user"))
ONE_PERSON = "one person"


def findings(change: FileChange) -> Iterator[DiagnosticResult]:
    """Yield what deserves a decision, question by question, with remarks; then of all together."""
    compares = change.old is not None
    if change.against and not compares:
        yield DiagnosticResult(change.against, True, NO_COMMITS)
    for question in change.questions():
        for ok, message in _question(question, compares=compares):
            yield DiagnosticResult(question.name, ok, message)
    if compares:
        yield from _refused(change)
        yield DiagnosticResult(ONE_PERSON, True, _person(change))


def _question(question: QuestionChange, *, compares: bool) -> Iterator[Finding]:
    before, after = question.forms
    if after is None:
        name = question.name
        yield True, f'gone: what it reserved stays reserved (if renamed: replaces = "{name}")'
        return
    if before is None:
        yield from _describe(after)
    else:
        yield _series(question)
        yield from _spending(after, before)
        yield from _left(after, before)
        yield from when_answered_again(after, before)
    if compares and question.state != "the same":
        yield True, f"which of two answers: {' '.join(_guesses(question))}"
    if compares and before is None:
        message = "new: consent does not cover it, ask again where client.must_ask is true"
        yield False, f"{message}: {question.to_ask}"
    for remark in lint(after):
        yield True, f"remark on {remark.key}: {remark.text}"


def _guesses(question: QuestionChange) -> Iterator[str]:
    """Yield how often a guess is right, then what differs of how often it was before."""
    before, after = (guess_sentences(form) if form else [] for form in question.forms)
    yield from after
    if earlier := [text for text in before if text not in after]:
        yield from ["Before:", *earlier]


def _describe(new: Collection) -> Iterator[Finding]:
    figures = [f"{format_value(getattr(new, key))} per {unit}" for unit, key in FIGURES]
    yield True, f"epsilon {', '.join(figures)}"
    if answers := describe_answers(new):
        yield True, answers


def _series(question: QuestionChange) -> Finding:
    """Return whether the same series goes on."""
    if keys := question.keys:
        message = f"{', '.join(keys)} changed: a new series begins, never summed with the old;"
        return False, f"{message} consent does not cover it, ask again: {question.to_ask}"
    return True, "the same series"


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


def _refused(change: FileChange) -> Iterator[DiagnosticResult]:
    """Yield what a device that began with the old file would refuse to load."""
    past, claims = change.continuing_claims()
    _, refused = fit(claims, past, total(past))
    for name, why in refused.items():
        message = f"refused at load by devices that began with the old file: {why}"
        yield DiagnosticResult(name, False, message)


def _person(change: FileChange) -> str:
    """Return what all questions of one person may spend, before and now."""
    before, now = spending(change.old or {}), spending(change.new)
    earlier = change.life_of_earlier_devices()
    kept_reserved = f" ({_epsilon(earlier)} who had the old file)" if earlier > now.life else ""
    return (
        f"epsilon {_step(before.day, now.day)} a day, {_step(before.month, now.month)} a month,"
        f" {_step(before.life, now.life)} for life{kept_reserved}: the plain sum, a safety limit"
    )


def _step(before: Fraction, now: Fraction) -> str:
    return _epsilon(now) if before == now else f"{_epsilon(before)} -> {_epsilon(now)}"


def _epsilon(epsilon: Fraction) -> str:
    return format_value(epsilon)


def guess_sentences(collection: Collection) -> list[str]:
    """Return how often somebody guesses right which of two answers a person gave."""
    return [text for key, text in _sentences(notice(collection)) if key in GUESSES]


def changed_sentences(question: QuestionChange) -> tuple[list[str], list[str]]:
    """Return the sentences that only the notice before has, and those that only the new one has."""
    if question.before is None or question.after is None:
        return [], []
    before, after = _texts(question.before), _texts(question.after)
    return [text for text in before if text not in after], [
        text for text in after if text not in before
    ]


def _texts(collection: Collection) -> list[str]:
    sentences = _sentences(notice(collection))
    return [collection.question, *(text for key, text in sentences if key != IDENTITY)]


def _sentences(notice_: Notice) -> list[tuple[str, str]]:
    texts = Texts()
    return [
        (statement.key, texts(statement.key, **statement.values))
        for part in notice_.parts
        for statement in part.statements
    ]
