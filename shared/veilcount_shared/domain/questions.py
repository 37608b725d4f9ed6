"""Questions: the answers of one person to several, of which a report is about two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ..errors import DefinitionError
from .choices import Choice
from .interface import Answers
from .named_parts import NamedParts, check_names

MIN_QUESTIONS, MAX_QUESTIONS = 2, 10
MAX_TABLE = 256  # cells of two questions: a subset of them is always a short message


@dataclass(frozen=True)
class Questions(NamedParts[Choice]):
    """Several questions, each with a list of answers. The value maps names to answers."""

    questions: tuple[tuple[str, Choice], ...]

    def __post_init__(self) -> None:
        check_names("questions", self.names, MIN_QUESTIONS, MAX_QUESTIONS)
        for name, choice in self.questions:
            if choice.other is not None:
                raise DefinitionError(f"questions.{name}", choice.other, "a question has no other")
        for one, two in combinations(self.questions, 2):
            if one[1].size * two[1].size > MAX_TABLE:
                fix = f"at most {MAX_TABLE} cells for any two questions: list fewer answers"
                cells = f"{one[1].size * two[1].size:,} cells of {one[0]} and {two[0]}"
                raise DefinitionError("questions", cells, fix)

    @property
    def parts(self) -> tuple[tuple[str, Choice], ...]:
        """The questions."""
        return self.questions

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The names of each two questions, in the order in which messages number them."""
        return tuple(combinations(self.names, 2))

    @property
    def labels(self) -> tuple[str, ...]:
        """Return what each cell of each pair says: what a report may stand for."""
        return tuple(self._cells())

    def _cells(self) -> Iterator[str]:
        for (one, first), (two, second) in combinations(self.questions, 2):
            for answer in first.labels:
                yield from (f"{one} {answer} and {two} {other}" for other in second.labels)

    def canonical(self) -> dict[str, Any]:
        """Return the fingerprinted fields."""
        questions = [[name, list(choice.values)] for name, choice in self.questions]
        return {"type": "questions", "questions": questions}

    def declaration(self) -> dict[str, Any]:
        """Return the keys of a definition that declare it."""
        questions = {name: list(choice.values) for name, choice in self.questions}
        return {"questions": questions, "tables": True}

    @property
    def extremes(self) -> tuple[object, object]:
        """Return the first answers, and the last ones: these differ in every pair."""
        first, last = zip(*(choice.extremes for _, choice in self.questions), strict=True)
        return dict(zip(self.names, first, strict=True)), dict(zip(self.names, last, strict=True))

    def answers(self) -> Answers:
        """Yield the statement of all questions and their answers, and of what a report is about."""
        questions = [f"{name} ({choice.named})" for name, choice in self.questions]
        yield "answers_questions", {"questions": "; ".join(questions)}
        yield "tables", {}
