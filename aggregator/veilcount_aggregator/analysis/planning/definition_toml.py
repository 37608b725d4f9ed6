"""The definition that a plan was computed for, as a collections file to paste."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from veilcount_shared import periods
from veilcount_shared.periods import Unit

from ...text.number_format import decimal
from .plan_question import YES_OR_NO, QuestionShape
from .solvers import Solution, TrustModel

LISTED = 24  # more values than these are better kept in a file of their own
YEAR = timedelta(days=365)


def definition(question: QuestionShape, trust: TrustModel, choice: Solution) -> str:
    """Return a file with one collection; app, name, question and values are for the author."""
    return "\n".join(['app = "my-app"', "", "[planned]", *_lines(question, trust, choice), ""])


def _lines(question: QuestionShape, trust: TrustModel, choice: Solution) -> Iterator[str]:
    yield 'question = "What would you like to know?"'
    yield from _domain(question, trust)
    if choice.device is None:
        yield 'model = "central"'
        yield f"budget = {decimal(choice.epsilon)}"
        yield 'adjacency = "substitute"'
    else:
        yield f"epsilon = {decimal(choice.device)}{_hidden(question, trust, choice)}"
    yield f'unit = "{question.unit}"'
    yield f"from = {question.start}"
    yield f"until = {_until(question)}"
    if question.arms > 1:
        yield 'segments = {arm = ["A", "B"]}'


def _domain(question: QuestionShape, trust: TrustModel) -> Iterator[str]:
    if question.range is not None:
        yield f"range = [{', '.join(map(decimal, question.range))}]"
        if trust is not TrustModel.CENTRAL:
            yield f'measure = "{question.measure}"'
    elif question.values == YES_OR_NO:
        yield "boolean = true"
    elif question.values is not None and question.values <= LISTED:
        labels = (f'"value {number}"' for number in range(1, question.values + 1))
        yield f"values = [{', '.join(labels)}]"
    else:
        yield f'values_file = "values.txt"  # {question.values:,} lines'


def _hidden(question: QuestionShape, trust: TrustModel, choice: Solution) -> str:
    if trust is not TrustModel.SHUFFLED:
        return ""
    return (
        f"  # {decimal(choice.epsilon)} at delta {float(question.delta):g}, only behind an"
        " independent shuffler"
    )


def _until(question: QuestionShape) -> date:
    """Return the first day after the periods; a campaign that is one period lasts a year."""
    if question.unit is Unit.USER:
        return question.start + YEAR
    return periods.first_day(question.unit, question.start, question.number_of_periods)
