"""What deserves a decision before a changed definitions file is shipped, one line each."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from .. import periods
from ..budget_claims import fit, total
from ..collection import Collection, describe_answers, lint
from ..diagnostic_result import DiagnosticResult
from ..errors import format_value
from .changes import NO_COMMITS, FileChange, QuestionChange, spending
from .paid_ranges import Finding, when_answered_again
from .sentences import guess_sentences

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
