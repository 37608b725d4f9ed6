"""How a change of definitions is written: lines, Markdown for a review, annotations of a runner."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..diagnostic_result import DiagnosticResult
from ..diagnostic_result import render as render_lines
from ..errors import format_value
from ..guessing import distinguishing_probability, times_in_twenty
from ..notice import MESSAGES
from .changes import NO_COMMITS, FileChange, QuestionChange, Spending, month_epsilon, spending
from .findings import changed_sentences, findings

NONE = "-"  # of a question that is new, or gone
COLUMNS = (
    *("question", "change", "right guesses, one report", "all reports", "epsilon a month"),
    *("for life", "ask again"),
)
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#~@&])")


def markdown(change: FileChange, results: Iterable[DiagnosticResult]) -> str:
    """Write a change for its review: figures and texts before and now, what is to be decided."""
    questions = [question for question in change.questions() if question.state != "the same"]
    lines = [
        f"### {_plain(change.file)}: what the change costs a person",
        "",
        f"Compared with {_plain(change.against)}: {_counts(questions)}",
        *([] if change.old is not None else [f"{NO_COMMITS.capitalize()}."]),
        "",
        *_spending_table(change),
        *_question_table(questions),
        *(line for question in change.questions() for line in _wording(question)),
        *_decisions(results),
    ]
    return "\n".join(lines).rstrip()


def _counts(questions: Iterable[QuestionChange]) -> str:
    names: dict[str, list[str]] = {}
    for question in questions:
        names.setdefault(question.state, []).append(_plain(question.name))
    parts = [f"{state}: {', '.join(entries)}" for state, entries in names.items()]
    return f"{'; '.join(parts)}." if parts else "no question is new, changed or gone."


def _spending_table(change: FileChange) -> Iterator[str]:
    before, now = spending(change.old or {}), spending(change.new)
    yield from _table(
        ("epsilon of one person, at most", "before", "now"), _spending_rows(before, now, change)
    )
    yield "The plain sum of the stated epsilons: a safety limit, no privacy figure."
    yield ""


def _spending_rows(
    before: Spending, now: Spending, change: FileChange
) -> Iterator[tuple[str, str, str]]:
    yield "a day", format_value(before.day), format_value(now.day)
    yield "a month", format_value(before.month), format_value(now.month)
    yield "for life", format_value(before.life), format_value(now.life)
    earlier = change.life_of_earlier_devices()
    if earlier > now.life:
        yield "for life, who had the file before", format_value(before.life), format_value(earlier)


def _question_table(questions: Sequence[QuestionChange]) -> Iterator[str]:
    if questions:
        yield from _table(COLUMNS, map(_question_row, questions))
        yield f"{MESSAGES['notice_guess']} Right guesses are at most so many in 20."
        yield ""


def _question_row(question: QuestionChange) -> tuple[str, ...]:
    state = f"changed: {', '.join(question.keys)}" if question.keys else question.state
    figures: list[Callable[..., str]] = [
        lambda form: times_in_twenty(distinguishing_probability(form)),
        lambda form: times_in_twenty(distinguishing_probability(form, form.priced_answers)),
        lambda form: format_value(month_epsilon(form)),
        lambda form: format_value(form.epsilon_user),
    ]
    steps = (
        _step(*(NONE if form is None else figure(form) for form in question.forms))
        for figure in figures
    )
    return _plain(question.name), _plain(state), *steps, question.to_ask


def _step(before: str, now: str) -> str:
    return now if before == now else f"{before} → {now}"


def _wording(question: QuestionChange) -> Iterator[str]:
    before, after = changed_sentences(question)
    if before or after:
        yield f"**{_plain(question.name)}: what people read**"
        yield ""
        yield from (f"- before: {_plain(sentence)}" for sentence in before)
        yield from (f"- now: {_plain(sentence)}" for sentence in after)
        yield ""


def _decisions(results: Iterable[DiagnosticResult]) -> Iterator[str]:
    if to_decide := [result for result in results if not result.ok]:
        yield "**To decide**"
        yield ""
        for result in to_decide:
            yield f"- {_plain(result.subject)}: {_plain(result.message)}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for cells in (columns, ["---"] * len(columns), *rows):
        yield f"| {' | '.join(cells)} |"
    yield ""


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is: a definition may hold any character."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


TEXT = "text"
Format = Callable[[FileChange, Sequence[DiagnosticResult]], str]


@dataclass(frozen=True, slots=True)
class RenderedChange:
    """A change in words, and whether nothing is left to decide."""

    text: str
    ok: bool


def render(change: FileChange, name: str) -> RenderedChange:
    """Write a change in one of the FORMATS."""
    results = list(findings(change))
    return RenderedChange(FORMATS[name](change, results), all(result.ok for result in results))


def _text(_: FileChange, results: Sequence[DiagnosticResult]) -> str:
    return render_lines(results, as_json=False)


def _json(_: FileChange, results: Sequence[DiagnosticResult]) -> str:
    return render_lines(results, as_json=True)


def _annotations(change: FileChange, results: Sequence[DiagnosticResult]) -> str:
    """Write workflow commands, each about the line of its question in the file."""
    return "\n".join(
        _annotation(result, change.file, change.lines.get(result.subject)) for result in results
    )


def _annotation(result: DiagnosticResult, file: str, line: int | None) -> str:
    place = {"file": file, "line": line, "title": result.subject}
    properties = ",".join(
        f"{key}={_escaped(str(value), ':,')}" for key, value in place.items() if value
    )
    level = "notice" if result.ok else "warning"
    return f"::{level} {properties}::{_escaped(result.message)}"


def _escaped(text: str, separators: str = "") -> str:
    """Escape what ends a workflow command, or one of its properties."""
    return "".join(f"%{ord(c):02X}" if c in f"%\r\n{separators}" else c for c in text)


FORMATS: Mapping[str, Format] = {
    TEXT: _text,
    "json": _json,
    "markdown": markdown,
    "github": _annotations,
}
